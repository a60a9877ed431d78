# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container proves which others: every container once, by main1 or by a container that main1 proves."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import (
    GROUP,
    MOST_WORKERS,
    OPTIONS,
    SCRIPT,
    START,
    Group,
    Proof,
)


def proof(placement: str, cpus: float = 1, memory: str = "256m") -> Proof:
    return Proof.of(plan(request(cluster_size=len(placement), cpus=cpus, memory=memory, shm="1m"), placement))


@pytest.mark.parametrize("placement", ["a", "aa", "a" * 17, "a" * 18, "a" * 200, "a" * 5 + "b" * 30 + "c", "abc" * 20])
def test_every_container_is_proved_once_after_the_one_that_proves_it(placement: str) -> None:
    proved = ["main1"]
    for prover, name in proof(placement).pairs("main1"):
        assert prover in proved
        proved.append(name)
    others = ["sub%d" % number for number in range(1, len(placement))]
    assert sorted(proved) == sorted(["main1", *others])


def test_main1_proves_a_small_session_itself() -> None:
    assert proof("a" * 4 + "b" * 13).groups == tuple(Group("sub%d" % number) for number in range(1, 17))


def test_a_group_of_a_large_session_is_on_one_agent() -> None:
    placement = "a" * 5 + "b" * 30
    groups = proof(placement).groups
    assert [len(group.members) + 1 for group in groups] == [4, GROUP, 30 - GROUP]
    for group in groups:
        agents = {placement[int(name[3:])] for name in (group.head, *group.members)}
        assert len(agents) == 1


@pytest.mark.parametrize(
    ("cpus", "memory", "workers"),
    [(1, "256m", MOST_WORKERS), (0.3, "256m", 2), (0.05, "256m", 1), (4, "16m", 2), (4, "8m", 1), (4, "23m", 5)],
)
def test_a_small_container_opens_few_connections_at_the_same_time(cpus: float, memory: str, workers: int) -> None:
    found = proof("a" * 40, cpus, memory)
    assert {found.workers, *(group.workers for group in found.groups)} == {workers}


def test_the_command_names_the_groups() -> None:
    command = Proof((Group("sub1", ("sub2", "sub3"), 4), Group("sub4")), 8).command("abc", 58)
    assert shlex.split(command)[-6:] == [START, *"abc 58 8 sub1:4:sub2,sub3 sub4".split()]


def test_the_script_is_a_script_of_any_shell() -> None:
    assert "@" not in SCRIPT.replace('"$@"', "").replace("openssh.com", "").replace("aes128-gcm@", "")
    subprocess.run(["sh", "-n"], input=SCRIPT, text=True, check=True)


# Notes what it is called with, and reaches the container, or shows what it would do, or runs a script of the test.
CLIENT = """#!/bin/sh
echo "$(basename "$(dirname "$0")") $*" >>"$NOTES"
case " $* " in
    *" -v "*) printf 'debug1: Reading configuration data %s\\r\\n' "$NOTES.config" >&2 ;;
    *" -G "*) printf 'host sub1\\nuser work\\nport %s\\n' "%PORT%" ;;
    *" sub1 "*) export BACKENDAI_CLUSTER_HOST=sub1; %REACHES% ;;
    *) export BACKENDAI_CLUSTER_HOST=sub2; %REACHES% ;;
esac
"""
REACHES = 'while [ "$#" -gt 1 ]; do shift; done; eval "$1"'
FAILS = "echo; printf 'port 2222: Connection refused\\r\\n' >&2; exit 255"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def proved(folder: Path, first: str, *hosts: str) -> tuple[list[str], list[str]]:
    """The answers of the script about these containers, and the connections that it has made."""
    runtime, notes, home = folder / "runtime", folder / "notes", folder / "notes.config"
    write(runtime / "bin/busybox", '#!/bin/sh\nexec "$@"\n')
    write(runtime / "bin/sh", '#!/bin/sh\nexec sh "$@"\n')
    for place in ("bin", "unprivileged"):
        write(runtime / place / "ssh", CLIENT.replace("%REACHES%", REACHES).replace("%PORT%", "22"))
    write(folder / "image/ssh", CLIENT.replace("%REACHES%", first).replace("%PORT%", "2222"))
    home.write_text("# mine\nHost *\n    Port   2222\n")
    usual = runtime / "unprivileged" if not first else folder / "image"
    done = subprocess.run(
        ["sh", "-s", "mark", "30", "1", *hosts],
        input=SCRIPT.replace("/opt/cluster-compute", str(runtime)).replace(OPTIONS, "-o X"),
        env={"PATH": f"{usual}:/usr/bin:/bin", "NOTES": str(notes)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line[5:].replace(str(folder), "") for line in done.stdout.splitlines() if line.startswith("mark ")]
    made = [line.split(" -F")[0].split(" /")[0] for line in notes.read_text().splitlines() if " -G " not in line]
    return lines, [line.replace(" -o X -o ConnectTimeout=5", "") for line in made]


def test_the_first_container_is_reached_as_users_do_without_a_further_connection(tmp_path: Path) -> None:
    answers, made = proved(tmp_path, "", "sub1", "sub2")
    assert answers == ["begun", "yes sub1", "yes sub2"]
    assert made == ["unprivileged sub1", "bin"]


def test_another_ssh_that_comes_first_connects_once_more(tmp_path: Path) -> None:
    answers, made = proved(tmp_path, REACHES, "sub1", "sub2")
    assert answers == ["begun", "yes sub1", "yes sub2"]
    assert made == ["bin", "image sub1", "bin"]


def test_another_ssh_that_does_not_connect_is_named_with_the_option_that_is_not_the_session_s(tmp_path: Path) -> None:
    answers, _made = proved(tmp_path, FAILS, "sub1", "sub2")
    why = "the first ssh in the PATH of a login there does not connect, /image/ssh: port 2222: Connection refused"
    assert answers == ["begun", f"no sub1 {why}; /notes.config:3: Port 2222 ", "yes sub2"]
