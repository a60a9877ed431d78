# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSH runtime in images that hold little or nothing: sshd, ssh, scp and sftp, the bootstrap and the batch command.

Needs an engine that was made an agent (playbooks/provision_agents.yml), and ssh-keygen. Removes all that it makes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import docker
import pytest
from docker.errors import DockerException
from docker.models.images import Image
from runtime_lab import (
    DEADLINE,
    REFERENCE,
    ROOT,
    RUNTIME,
    STATE,
    Folder,
    Keys,
    Lab,
    exit_code,
    find_volume,
    go,
    import_image,
    read_program,
    run,
    until,
    wait_for_sshd,
)


@pytest.fixture(scope="module")
def engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
        find_volume(client.api)
    except DockerException as error:
        pytest.fail("no agent to test on: %s" % error)
    return client


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def images(engine: docker.DockerClient) -> Iterator[dict[str, str]]:
    """Images by name: only BusyBox, empty, and the reference image."""
    busybox = Folder().add("bin", None, 0o755).add("bin/busybox", read_program(engine, "bin/busybox"), 0o755)
    made = {
        "busybox": import_image(engine, "busybox", busybox),
        "nothing": import_image(engine, "nothing", Folder().add("unused", "")),
    }
    yield {**made, "reference": REFERENCE}
    for reference in made.values():
        image: Image = engine.images.get(reference)
        engine.images.remove(image.id, force=True)


@pytest.fixture
def lab(engine: docker.DockerClient, keys: Keys) -> Iterator[Lab]:
    made = Lab(engine, keys)
    yield made
    made.remove()


def test_the_runtime_was_made_from_this_source(engine: docker.DockerClient) -> None:
    for source, made in {
        "init.sh": "bin/init",
        "attached.sh": "bin/attached",
        "everywhere.sh": "bin/everywhere",
        "discover_hosts.sh": "bin/discover_hosts",
        "run_own.sh": "bin/run_own",
        "life.sh": "libexec/life.sh",
        "own_environment.sh": "libexec/own_environment.sh",
        "limits.sh": "libexec/limits.sh",
        "login.sh": "libexec/login.sh",
        "secrets.sh": "libexec/secrets.sh",
        "apps.sh": "libexec/apps.sh",
    }.items():
        wanted = (ROOT / "roles/image/files" / source).read_bytes().partition(b"\n")[2]
        assert read_program(engine, made).partition(b"\n")[2] == wanted


def test_the_programs_look_for_no_settings_that_an_image_has_for_its_own(engine: docker.DockerClient) -> None:
    lines = (ROOT / "roles/image/files/make_runtime.sh").read_text().splitlines()
    paths = " ".join(line for line in lines if line.startswith("settings=")).replace('"', " ").split()
    hidden = [path for path in paths if path.startswith("/")]
    assert {"/etc/nologin", "/etc/nsswitch.conf", "/usr/lib/ssl"} <= set(hidden)
    for program in ("libexec/sshd", "libexec/ssh", "lib/libc.so.6", "lib/libcrypto.so.3"):
        content = read_program(engine, program)
        assert [path for path in hidden if path.encode() in content] == []


@pytest.mark.parametrize("image", ["busybox", "nothing", "reference"])
def test_ssh_scp_and_sftp_without_an_option_or_a_prompt(lab: Lab, images: dict[str, str], image: str) -> None:
    main = lab.start("main1", images[image])
    sub = lab.start("sub1", images[image])
    wait_for_sshd(main)
    wait_for_sshd(sub)

    assert run(main, "ssh sub1 'hostname; id -un'").split() == ["sub1", "work"]
    assert run(sub, "ssh main1 ssh sub1 hostname").strip() == "sub1"
    run(main, "echo here >one; scp -q one sub1:two; scp -q sub1:two three; echo 'get two four' | sftp -q -b - sub1")
    assert run(main, "cat three four").split() == ["here", "here"]


@pytest.mark.parametrize("image", ["nothing", "reference"])
def test_works_again_after_a_restart(lab: Lab, images: dict[str, str], image: str) -> None:
    bootstrap = {"bootstrap": "echo once >>~/times; id -un; pwd; echo heard >/dev/stdout\n"}
    main = lab.start("main1", images[image], bootstrap)
    wait_for_sshd(main)
    assert main.logs(stderr=False).decode().split() == ["work", "/home/work", "heard"]
    main.restart(timeout=10)
    wait_for_sshd(main, starts=2)

    assert run(main, "ssh main1 cat times").split() == ["once"]


def test_prompt_of_the_reference_image(lab: Lab, images: dict[str, str]) -> None:
    sub = lab.start("sub1", images["reference"])
    wait_for_sshd(sub)
    assert "work@sub1:~$ " in run(sub, "echo exit | ssh -tt sub1")


def test_a_failed_bootstrap_ends_the_container(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"bootstrap": "echo trouble >&2; exit 7\n"})
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 1
    said = main.logs().decode()
    assert said == "trouble\ncluster-compute: the bootstrap script failed with exit code 7\n"


def test_a_container_without_its_secrets_runs_nothing_and_ends(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"secrets": "1\n", "bootstrap": "echo ran\n"})
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 82
    said = "the session's secrets did not arrive within 1 s; run cluster_session.yml again to repair the session"
    assert main.logs().decode() == f"cluster-compute: {said}\n"


def test_the_command_waits_for_go_and_runs_once(lab: Lab, images: dict[str, str]) -> None:
    command = "#!%s/bin/sh\necho once >>~/times; echo said; exit 3\n" % RUNTIME
    main = lab.start("main1", images["nothing"], {"command": command})
    wait_for_sshd(main)
    assert run(main, "ls") == ""
    go(main)
    assert exit_code(main) == "3"
    assert "said\n" in main.logs(stderr=False).decode()
    main.restart(timeout=10)
    wait_for_sshd(main, starts=2)
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["once"]


def test_a_command_that_fails_starts_again_and_the_last_exit_code_counts(lab: Lab, images: dict[str, str]) -> None:
    command = 'echo run >>~/times; test "$(wc -l <~/times)" -eq 3 || exit 7\n'
    main = lab.start("main1", images["nothing"], {"command": command, "restarts": "2\n"})
    never = lab.start("sub1", images["nothing"], {"command": command, "restarts": "0\n"})
    for container in (main, never):
        wait_for_sshd(container)
        go(container)
    assert exit_code(never) == "7"
    assert exit_code(main) == "0"
    said = main.logs().decode()
    assert "the command ended with exit code 7 and starts again in 1 s; restarts left: 2" in said
    assert "starts again in 2 s; restarts left: 1" in said


def test_a_command_that_was_cut_short_waits_for_go_again(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"command": "echo begun >>~/times; sleep 1000\n"})
    wait_for_sshd(main)
    go(main)
    until(lambda: run(main, "ls") != "", "the command runs")
    main.kill()
    main.start()
    wait_for_sshd(main, starts=2)
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["begun"]
    go(main)
    until(lambda: run(main, "cat times").split() == ["begun"] * 2, "the command runs again")


def test_another_command_replaces_one_that_has_ended_also_after_a_restart(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"command": "exit 3\n", "timeout": "6"})
    wait_for_sshd(main)
    go(main)
    assert exit_code(main) == "3"
    main.restart(timeout=10)
    wait_for_sshd(main, starts=2)
    script = "#!%s/bin/sh\nsleep 6.5; echo next >>~/times; exit 4\n" % RUNTIME
    for name, content in {"next_command": script, "next_timeout": "", "next": ""}.items():
        main.put_archive(STATE, Folder().add(name, content).bytes())
    until(lambda: run(main, "ls") != "", "the next command runs")
    assert exit_code(main) == "4"
    assert run(main, "cat times; ls %s" % STATE, user="root").split() == ["next", "exit_code"]


def test_the_progress_of_another_container_is_ignored(lab: Lab, images: dict[str, str]) -> None:
    """An image committed from a session's container contains its scripts and its progress."""
    other = {place + name: "0\n" for place in ("", "run/other/") for name in (".bootstrapped", "go", "exit_code")}
    scripts = {"bootstrap": "echo prepared >>~/times\n", "command": "echo done >>~/times; exit 5\n"}
    main = lab.start("main1", images["nothing"], {**other, **scripts})
    sub = lab.start("sub1", images["nothing"], {**other, "bootstrap": "", "command": "", "timeout": "", "volumes": ""})
    wait_for_sshd(main)
    wait_for_sshd(sub)
    time.sleep(0.5)
    assert run(main, "cat times").split() == ["prepared"]
    go(main)
    assert exit_code(main) == "5"
    assert run(sub, "ls") == ""


def test_a_bootstrap_that_runs_out_of_memory_says_so(lab: Lab, images: dict[str, str]) -> None:
    hungry = "python3 -c 'x = bytearray(200 << 20); print(len(x))'\n"
    main = lab.start("main1", images["reference"], {"bootstrap": hungry}, mem_limit="64m", memswap_limit="64m")
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 1
    assert "the bootstrap script failed with exit code 137, out of memory" in main.logs().decode()


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_command_that_takes_too_long_is_ended_with_its_children(lab: Lab, images: dict[str, str], trap: str) -> None:
    command = "%ssleep 1000 & while true; do sleep 100; done\n" % trap
    main = lab.start("main1", images["nothing"], {"command": command, "timeout": "1"})
    wait_for_sshd(main)
    go(main)
    assert exit_code(main) == "124"
    assert "sleep 100" not in run(main, "ps -o args", user="root")


def test_stops_at_once_during_the_bootstrap(lab: Lab, images: dict[str, str]) -> None:
    main = lab.start("main1", images["nothing"], {"bootstrap": "echo begun; sleep 1000\n"})
    until(lambda: b"begun" in main.logs(), "the bootstrap runs")
    main.stop(timeout=100)
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
