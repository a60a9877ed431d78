# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``everywhere`` of the SSH runtime: one command in all containers of a session, in any image, from any container.

Needs an engine that was made an agent (playbooks/provision_agents.yml) and OpenSSH's clients. Removes all it makes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import docker
import pytest
from docker.errors import NotFound
from runtime_lab import find_volume
from ssh_lab import PREFIX, Lab, archive, make_plan

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import REFERENCE_IMAGE
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

EMPTY = PREFIX + "everywhere-nothing:1"
HOSTS = ("main1", "sub1", "sub2")


@pytest.fixture(scope="module")
def client(engine_host: str) -> Iterator[Any]:
    """The Docker SDK, connected to an agent that has an image with nothing in it."""
    with closing(docker.APIClient(base_url=engine_host, version="auto")) as sdk:
        try:
            find_volume(sdk)
            sdk.inspect_image(REFERENCE_IMAGE)
        except NotFound as error:
            pytest.fail(f"no agent to test on: {error}")
        repository, _colon, tag = EMPTY.rpartition(":")
        sdk.import_image_from_data(archive([("etc", None, 0o755)]), repository=repository, tag=tag)
        yield sdk


@pytest.fixture(scope="module", params=["nothing", pytest.param("reference", marks=pytest.mark.large)])
def lab(request: Any, client: Any, engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three containers of an image that holds nothing, and of the reference image."""
    image = EMPTY if request.param == "nothing" else REFERENCE_IMAGE
    plan = make_plan(image, len(HOSTS), {"BACKENDAI_CLUSTER_HOSTS": ",".join(HOSTS), "WORD": "a b"})
    made = Lab(plan, tmp_path_factory.mktemp("artifacts"), engine_host)
    try:
        made.up()
        for host in HOSTS:
            made.ssh(host, "true")
        yield made
    finally:
        made.remove()


def run(lab: Lab, command: str, host: str = "main1") -> tuple[int, list[str], list[str]]:
    """Exit code, sorted lines of stdout, and sorted lines of stderr of a command line."""
    done = subprocess.run(
        ["ssh", "-F", lab.config, "-o", "BatchMode=yes", host, command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, sorted(done.stdout.splitlines()), sorted(done.stderr.splitlines())


@contextmanager
def started(lab: Lab, command: str) -> Iterator[Any]:
    """A command line of main1 in the background."""
    shell = ["ssh", "-F", lab.config, "-o", "BatchMode=yes", "main1", command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(shell, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def runs(client: Any, lab: Lab, host: str, word: str) -> bool:
    """Whether a process with this word in its command line runs in a container. To ask the engine takes a tenth of a login."""
    name = lab.plan.containers[HOSTS.index(host)].name
    return any(word in " ".join(process) for process in client.top(name)["Processes"])


@pytest.mark.parametrize("host", HOSTS)
def test_a_command_runs_in_every_container_from_any_of_them(lab: Lab, host: str) -> None:
    assert run(lab, "everywhere hostname", host) == (0, [f"{name}: {name}" for name in HOSTS], [])


def test_a_single_argument_is_a_script_of_each_container(lab: Lab) -> None:
    script = """everywhere 'echo "$BACKENDAI_CLUSTER_HOST $WORD"; echo trouble >&2'"""
    assert run(lab, script) == (0, [f"{name}: {name} a b" for name in HOSTS], [f"{name}: trouble" for name in HOSTS])


@pytest.mark.parametrize("word", ["two words", "it's", "$WORD `id`", 'a"b\\c', "", "*", "one\ntwo", "größe", "-n"])
def test_several_arguments_are_passed_on_unchanged(lab: Lab, word: str) -> None:
    quoted = "'%s'" % word.replace("'", "'\\''")
    code, out, err = run(lab, f"everywhere printf '<%s>\\n' {quoted} last")
    lines = f"<{word}>\n<last>".split("\n")
    assert (code, out, err) == (0, sorted(f"{name}: {line}" for name in HOSTS for line in lines), [])


def test_the_folder_is_that_of_the_caller_where_it_exists(lab: Lab) -> None:
    assert run(lab, "mkdir -p /tmp/only/here; cd /tmp/only/here; everywhere pwd")[1] == [
        "main1: /tmp/only/here",
        "sub1: /home/work",
        "sub2: /home/work",
    ]


def test_the_highest_exit_code_counts_and_is_named(lab: Lab) -> None:
    script = """everywhere 'case $BACKENDAI_CLUSTER_HOST in sub1) exit 3;; sub2) exit 255;; esac'"""
    assert run(lab, script) == (254, [], ["everywhere: failed in sub1 (3), sub2 (254)"])


@pytest.mark.parametrize("wrong", ["", "--rejoin 5", "--rejoin x true", "--unknown true", "''"])
def test_a_wrong_call_runs_nothing(lab: Lab, wrong: str) -> None:
    code, out, err = run(lab, f"everywhere {wrong}")
    assert (code, out, len(err)) == (2, [], 1)
    assert err[0].startswith("everywhere: ")


def test_outside_of_a_login_it_says_what_is_missing(lab: Lab) -> None:
    code, _out, err = run(lab, "unset BACKENDAI_CLUSTER_HOSTS; everywhere true")
    assert (code, err) == (
        2,
        ["everywhere: BACKENDAI_CLUSTER_HOSTS is not set: this is no shell of a session's container; enter it by ssh"],
    )


def test_lines_arrive_while_the_command_runs(lab: Lab) -> None:
    """The first line is read before the command gets what lets it end."""
    command = "everywhere 'echo begun; until [ -e /tmp/finish ]; do sleep 0.1; done; rm /tmp/finish'"
    with started(lab, command) as process:
        assert sorted(process.stdout.readline() for _ in HOSTS) == [f"{name}: begun\n" for name in HOSTS]
        for host in HOSTS:
            lab.ssh(host, "touch /tmp/finish")
        assert process.wait(60) == 0


@pytest.mark.parametrize(("signal", "code"), [("INT", 130), ("TERM", 143), ("KILL", 255)])
def test_the_command_ends_with_everywhere(client: Any, lab: Lab, signal: str, code: int) -> None:
    """Its children, too, and also if they ignore what asks them to end."""
    word = f"2026{code}"
    script = f"(trap '' TERM; sleep {word}) & sleep {word}"
    command = f'echo $$ >/tmp/pid; exec everywhere "{script}"'
    with started(lab, command) as process:
        for host in HOSTS:
            assert wait_until(lambda host=host: runs(client, lab, host, f"sleep {word}"), deadline_in(30))  # type: ignore[misc]
        lab.ssh("main1", f"kill -{signal} $(cat /tmp/pid)")
        assert process.wait(60) == code
    for host in HOSTS:
        gone = wait_until(lambda host=host: not runs(client, lab, host, f"sleep {word}"), deadline_in(60))  # type: ignore[misc]
        assert gone


SLEEPS = "everywhere 'until [ -e /tmp/over ]; do sleep 0.2; done'"


def everywhere_runs(client: Any, lab: Lab, word: str) -> bool:
    return all(wait_until(lambda host=host: runs(client, lab, host, word), deadline_in(60)) for host in HOSTS)  # type: ignore[misc]


@pytest.mark.parametrize("command", [SLEEPS, f"cd /tmp && {SLEEPS}; echo after", f"{SLEEPS} | cat"])
def test_the_command_ends_with_a_connection_without_a_terminal(client: Any, lab: Lab, command: str) -> None:
    """No signal arrives in the container, whether the client gets ^C or is killed."""
    with started(lab, command) as process:
        assert everywhere_runs(client, lab, "/tmp/over")
        process.kill()
    for host in HOSTS:
        assert wait_until(lambda host=host: not runs(client, lab, host, "/tmp/over"), deadline_in(60))  # type: ignore[misc]


ATTACHED = "/opt/cluster-compute/bin/attached; "


def test_what_an_attached_command_has_started_ends_with_its_connection(client: Any, lab: Lab) -> None:
    """As the command of ``cluster-compute ssh`` begins: in any process group, and also what ignores TERM."""
    box = "/opt/cluster-compute/bin/busybox"
    script = f"{ATTACHED}{box} timeout 600 sleep 20261 & (trap '' TERM; sleep 20261) | cat"
    with started(lab, script) as process:
        assert wait_until(lambda: runs(client, lab, "main1", "sleep 20261"), deadline_in(60))
        process.kill()
    assert wait_until(lambda: not runs(client, lab, "main1", "sleep 20261"), deadline_in(90))


def test_an_attached_command_has_its_input_and_exit_code_and_may_leave_something_behind(client: Any, lab: Lab) -> None:
    answer = subprocess.run(
        ["ssh", "-F", lab.config, "main1", f"{ATTACHED}sleep 20262 {QUIET} echo $! >/tmp/left; cat; exit 7"],
        input=b"given\n",
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (7, b"given\n", b"")
    # The watch looks every second.
    time.sleep(3)
    assert runs(client, lab, "main1", "sleep 20262")
    assert not runs(client, lab, "main1", "attached")
    lab.ssh("main1", "kill $(cat /tmp/left)")


QUIET = ">/dev/null 2>&1 </dev/null &"
DETACHED = [
    f"nohup {SLEEPS}",
    f"nohup {SLEEPS} {QUIET}",
    f"/opt/cluster-compute/bin/setsid {SLEEPS} {QUIET} wait",
    f"{SLEEPS} {QUIET}",
]


@pytest.mark.parametrize("command", DETACHED)
def test_a_command_that_its_user_detaches_outlives_the_connection(client: Any, lab: Lab, command: str) -> None:
    nohup = 'PATH=$PATH:/tmp; printf \'#!/bin/sh\\ntrap "" HUP; exec "$@"\' >/tmp/nohup; chmod 755 /tmp/nohup; '
    with started(lab, nohup.replace("/bin/sh", "/opt/cluster-compute/bin/sh") + command) as process:
        assert everywhere_runs(client, lab, "/tmp/over")
        process.kill()
    # A watch looks every two seconds.
    time.sleep(5)
    assert [host for host in HOSTS if not runs(client, lab, host, "/tmp/over")] == []
    for host in HOSTS:
        lab.ssh(host, "touch /tmp/over")
    for host in HOSTS:
        assert wait_until(lambda host=host: not runs(client, lab, host, "/tmp/over"), deadline_in(60))  # type: ignore[misc]
        lab.ssh(host, "rm /tmp/over")


WAITS = "echo begun; until [ -e /tmp/finish ]; do sleep 0.1; done; rm /tmp/finish; echo done"
LOST = [
    # Without the option, its loss is a failure, and the others run to their end.
    ("everywhere", "", 255, "everywhere: failed in sub2 (255)"),
    # With it, it gets the command again, or the others go on without it.
    ("everywhere --rejoin 300", "again", 0, "everywhere: sub2 is back"),
    ("everywhere --rejoin 3600", "", 0, "everywhere: failed in sub2 (lost)"),
]


@pytest.mark.parametrize(("launcher", "then", "code", "said"), LOST)
def test_a_container_is_lost(lab: Lab, client: Any, launcher: str, then: str, code: int, said: str) -> None:
    lost = lab.plan.containers[2].name
    with started(lab, f"{launcher} '{WAITS}'") as process:
        out = [process.stdout.readline() for _ in HOSTS]
        client.kill(lost)
        if then:
            client.start(lost)
            out.append(process.stdout.readline())
        for host in HOSTS if then else HOSTS[:2]:
            lab.ssh(host, "touch /tmp/finish")
        rest, errors = process.communicate(timeout=120)
    if not then:
        client.start(lost)
    assert (process.returncode, said in errors.splitlines()) == (code, True), errors
    ended = [f"{host}: done" for host in (HOSTS if then else HOSTS[:2])]
    begun = [f"{host}: begun" for host in HOSTS] + ["sub2: begun"] * bool(then)
    assert sorted(line.strip() for line in out + rest.splitlines()) == sorted(begun + ended)
    lab.ssh("sub2", "true")


def test_the_containers_that_answer_are_discovered(lab: Lab, client: Any) -> None:
    """In the form of Horovod's host discovery scripts: HOST:SLOTS."""
    assert run(lab, "discover_hosts") == (0, [f"{name}:1" for name in HOSTS], [])
    lost = lab.plan.containers[2].name
    client.kill(lost)
    assert run(lab, "discover_hosts") == (0, ["main1:1", "sub1:1"], [])
    client.start(lost)
    assert wait_until(lambda: run(lab, "discover_hosts")[1] == [f"{name}:1" for name in HOSTS], deadline_in(120))
