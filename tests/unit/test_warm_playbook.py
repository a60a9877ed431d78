# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the process that has imported Ansible are runs of ansible-playbook."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from playbook_runs import Interruption
from warm_playbook import WarmPlaybook, stand_in, warm_playbook

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

PROGRAM = Path(sys.executable).with_name("ansible-playbook")
STARTER = Path(__file__).resolve().parents[1] / "tools/warm_playbook.py"
COLLECTIONS = Path(__file__).resolve().parents[2] / "collections"
LIMIT = 600  # seconds, for what takes few
PLAY = """
- hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - ansible.builtin.debug:
        msg: "{{ lookup('env', 'MARK') }} in {{ lookup('pipe', 'pwd') }} {{ number }}"
    - ansible.builtin.command: "{{ then }}"
      changed_when: false
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ANSIBLE_")}
    home = tmp_path_factory.mktemp("home")
    settings = home / "ansible.cfg"
    # As in the file of the checkout: without it, half of the processor time of a wait is a look for results.
    settings.write_text(f"[defaults]\ncollections_path = {COLLECTIONS}\ninternal_poll_interval = 0.01\n")
    return {**kept, "HOME": str(home), "MARK": "mine", "ANSIBLE_CONFIG": str(settings), "ANSIBLE_NOCOLOR": "1"}


@pytest.fixture(scope="module")
def warm(environment: dict[str, str]) -> Iterator[WarmPlaybook]:
    process = WarmPlaybook(environment)
    yield process
    process.end()


@pytest.fixture
def play(tmp_path: Path) -> Path:
    (tmp_path / "play.yml").write_text(PLAY)
    return tmp_path


def arguments(number: int, then: str) -> list[str]:
    return ["-i", "localhost,", "-c", "local", "play.yml", "-e", f"number={number}", "-e", f"then='{then}'"]


def running(command: bytes) -> bool:
    """Whether a process has this command line. One that has just ended has none."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == command:
                return True
    return False


@pytest.mark.parametrize("then", ["echo done", "ls nowhere"])
def test_a_run_has_the_exit_code_and_the_output_of_the_program(
    warm: WarmPlaybook, environment: dict[str, str], play: Path, then: str
) -> None:
    asked = arguments(1, then)
    program = subprocess.run(  # noqa: PLW1510
        [PROGRAM, *asked], cwd=play, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    code, text = warm.run(environment, asked, play, LIMIT)
    assert f"mine in {play} 1" in text
    shown = [line for line in text.splitlines() if '"delta"' not in line and "fatal" not in line]
    assert code == program.returncode
    assert shown == [line for line in program.stdout.splitlines() if '"delta"' not in line and "fatal" not in line]


def test_a_stand_in_is_a_run_in_the_process_that_has_imported_ansible_and_is_killed_if_it_is_left(
    environment: dict[str, str], play: Path
) -> None:
    """In one process: to import Ansible takes most of the time."""
    with stand_in(play, environment, 1) as program:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        own = {**environment, "MARK": "yours"}
        done = [
            subprocess.run([program, *arguments(number, then)], check=False, cwd=play, env=own, **streams)
            for number, then in enumerate(("echo done", "ls nowhere"))
        ]
        other = {**own, "ANSIBLE_NOCOLOR": "0"}
        refused = subprocess.run([program, *arguments(3, "echo done")], check=False, cwd=play, env=other, **streams)
        left = subprocess.Popen([program, *arguments(1, "sleep 4337")], cwd=play, env=environment)
        assert wait_until(lambda: running(b"sleep\x004337\x00"), deadline_in(LIMIT))
    assert wait_until(lambda: not running(b"sleep\x004337\x00"), deadline_in(10))
    assert left.wait(10) != 0
    assert [one.returncode for one in done] == [0, 2]
    assert [f"yours in {play} {number}" in one.stdout for number, one in enumerate(done)] == [True, True]
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "other values of ANSIBLE_NOCOLOR" in refused.stderr


def test_a_program_starts_the_stand_in_with_environments_of_its_own(environment: dict[str, str], play: Path) -> None:
    ran = shlex.join(["ansible-playbook", *arguments(1, "echo done")])
    script = f"{ran} && ANSIBLE_LOCALHOST_WARNING=false MARK=yours {ran} && exit 3"
    command = [sys.executable, STARTER, "sh", "-c", script]
    done = subprocess.run(command, cwd=play, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert f"mine in {play} 1" in done.stdout
    assert f"yours in {play} 1" in done.stdout


def test_runs_side_by_side_keep_their_own_output_and_temporary_files(
    warm: WarmPlaybook, environment: dict[str, str], play: Path
) -> None:
    with ThreadPoolExecutor(3) as threads:
        runs = list(
            threads.map(lambda number: warm.run(environment, arguments(number, "echo done"), play, LIMIT), range(3))
        )
    assert [code for code, _text in runs] == [0, 0, 0], runs
    assert [f"mine in {play} {number}" in text for number, (_code, text) in enumerate(runs)] == [True] * 3


def test_a_run_past_its_deadline_is_killed_with_all_that_it_has_started(
    warm: WarmPlaybook, environment: dict[str, str], play: Path
) -> None:
    with pytest.raises(TimeoutError):
        warm.run(environment, arguments(1, "sleep 4329"), play, 6)
    assert wait_until(lambda: not running(b"sleep\x004329\x00"), deadline_in(10))
    assert warm.run(environment, arguments(2, "echo done"), play, LIMIT)[0] == 0


def test_a_run_is_killed_at_a_line_of_its_output_with_all_that_it_has_started(
    warm: WarmPlaybook, environment: dict[str, str], play: Path
) -> None:
    kill = Interruption(lambda line: line.startswith("TASK [ansible.builtin.command]"))
    is_killed, text = warm.interrupted(environment, arguments(1, "sleep 4331"), play, LIMIT, kill)
    assert is_killed, text
    assert "PLAY RECAP" not in text
    assert wait_until(lambda: not running(b"sleep\x004331\x00"), deadline_in(10))
    is_killed, text = warm.interrupted(
        environment, arguments(1, "echo done"), play, LIMIT, Interruption(lambda _line: False)
    )
    assert not is_killed
    assert "PLAY RECAP" in text


def test_a_run_has_a_home_directory_of_its_own(
    warm: WarmPlaybook, environment: dict[str, str], play: Path, tmp_path: Path
) -> None:
    """The process has imported Ansible with another one."""
    moved = {**environment, "HOME": str(tmp_path / "other"), "MARK": "yours"}
    asked = ["-i", "localhost,", "-c", "local", "play.yml", "-e", "number=1", "-e", "then='{{ then_in_home }}'"]
    asked += ["-e", "then_in_home=\"sh -c 'echo ~ {{ lookup('config', 'ANSIBLE_HOME') }}'\"", "-v"]
    code, text = warm.run(moved, asked, play, LIMIT)
    assert code == 0, text
    assert f"yours in {play} 1" in text
    assert f"{tmp_path}/other {tmp_path}/other/.ansible" in text
    assert list((tmp_path / "other/.ansible/tmp").iterdir()) == []


def test_neither_the_home_directory_nor_the_name_of_the_test_makes_a_process_of_its_own(
    environment: dict[str, str],
) -> None:
    one, other = (
        warm_playbook({**environment, "HOME": "/" + name, "PYTEST_CURRENT_TEST": name}, ["true"])
        for name in ("this (setup)", "that (call)")
    )
    assert one is other
