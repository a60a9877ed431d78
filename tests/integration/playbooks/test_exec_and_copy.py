# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""session_exec.yml and session_copy.yml: commands and files in the containers of a session, as a user types them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from controller import Controller, Done, Session
from engine_lab import IMAGE, make_image

NAMES = ["main1", "sub1", "sub2"]


@pytest.fixture(scope="module")
def session(controller: Controller) -> Session:
    return controller.launched("work", session_cluster_size=3)


@pytest.fixture(scope="module")
def bare(controller: Controller) -> Session:
    """A session of an image with BusyBox and nothing else."""
    make_image(controller.client)
    return controller.launched("bare", session_cluster_size=2, session_image=IMAGE)


def execute(controller: Controller, command: str, *arguments: str, **variables: Any) -> Done:
    variables = {"session_name": "work", **{f"session_{name}": value for name, value in variables.items()}}
    return controller.play("session_exec", *arguments, session_exec_command=command, **variables)


def copy(controller: Controller, *arguments: str, **variables: Any) -> Done:
    return controller.play(
        "session_copy", *arguments, **{f"session_{name}": value for name, value in variables.items()}
    )


@pytest.mark.usefixtures("session")
def test_a_command_runs_in_every_container_and_each_line_has_its_name(controller: Controller) -> None:
    done = execute(controller, "echo $BACKENDAI_CLUSTER_HOST; id -un >&2").check()
    for name in NAMES:
        assert f"{name}: {name}" in done.text
        assert f"{name}: work" in done.text


@pytest.mark.usefixtures("session")
def test_the_processes_of_a_command_run_at_the_same_time(controller: Controller) -> None:
    """main1 waits for a file that sub2 writes: with fewer at a time this would end at the deadline."""
    command = (
        "if [ $(hostname) = main1 ]; then until [ -e met ]; do sleep 0.1; done; echo met; else ssh main1 touch met; fi"
    )
    assert "main1: met" in execute(controller, command, exec_timeout=60).check().text


@pytest.mark.usefixtures("session")
def test_the_worst_exit_code_fails_the_playbook_and_names_the_container(controller: Controller) -> None:
    done = execute(controller, "echo out; [ $(hostname) != sub1 ] || exit 3", exec_output="grouped")
    assert done.code == 2
    assert done.message == "The command failed in 1 of 3 containers: sub1 (exit code 3)."
    assert "── sub1 (exit code 3)" in done.text


@pytest.mark.usefixtures("session")
def test_some_containers_and_no_others(controller: Controller) -> None:
    done = execute(controller, "hostname", exec_containers=["sub2"]).check()
    assert "sub2: sub2" in done.text
    assert "main1: main1" not in done.text
    refused = execute(controller, "hostname", exec_containers=["sub9"])
    assert (
        refused.message
        == "session_exec_containers: 'sub9': session work has no such container, only main1, sub1, sub2."
    )


def test_check_mode_runs_nothing(controller: Controller, session: Session) -> None:
    done = execute(controller, "touch ran", "--check").check()
    assert "The command would run in 3 containers (main1, sub1, sub2)." in done.text
    assert "ran" not in session.say("main1", "ls").split()


def test_a_command_that_takes_too_long_is_ended_in_the_containers(controller: Controller, session: Session) -> None:
    """With everything that it has started."""
    done = execute(controller, "echo begun; sleep 4321 & sleep 1234", exec_timeout=8, exec_containers=["main1", "sub1"])
    assert "main1 (no end within 8 s), sub1 (no end within 8 s)" in done.message
    assert "sub1: begun" in done.text
    deadline = time.monotonic() + 30
    while session.say("sub1", "ps -eo args | grep -cE '^sleep (4321|1234)' || true") != "0":
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.usefixtures("session")
def test_hostile_output_is_visible_and_bounded(controller: Controller) -> None:
    done = execute(
        controller, r"printf 'a\033[2Jb\n\342\200\256x\n'; yes | head -c 4000000", exec_containers=["sub1"]
    ).check()
    assert "sub1: a" not in done.text
    assert "bytes before this are left out)" in done.text
    # A line of two bytes takes sixteen in the text, so everything that was written would be 32 MB.
    assert len(done.text) < 9_000_000
    shown = execute(controller, r"printf 'a\033[2Jb\n\342\200\256x\n'", exec_containers=["sub1"]).check().text
    assert "\x1b" not in shown
    assert r"sub1: a\x1b[2Jb" in shown
    assert r"sub1: \u202ex" in shown


def test_bad_input_is_one_sentence(controller: Controller) -> None:
    nowhere = controller.play("session_exec", session_name="nowhere", session_exec_command="true").message
    assert nowhere.startswith("session_name: 'nowhere': ")
    assert "has no session.json: sessions.yml lists the sessions" in nowhere
    assert "session_exec_command: '': must be given" in controller.play("session_exec", session_name="work").message
    assert "session_name: '': must be given" in controller.play("session_exec", session_exec_command="true").message


@pytest.mark.usefixtures("session")
def test_a_container_that_is_lost_does_not_hide_the_others(controller: Controller, session: Session) -> None:
    controller.client.kill(session.containers()["sub2"]["Id"])
    try:
        done = execute(controller, "hostname")
        assert "sub1: sub1" in done.text
        assert "sub2 (no connection: " in done.message
    finally:
        controller.launch("work", session_cluster_size=3).check()


def tree(folder: Path) -> None:
    """A folder with a file with spaces, an executable, and a link that leads out."""
    (folder / "in side").mkdir(parents=True)
    (folder / "in side" / "-file one").write_text("one\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "out").symlink_to("/etc")


def test_a_folder_goes_to_every_container_and_a_second_time_nothing(
    controller: Controller, session: Session, tmp_path: Path
) -> None:
    tree(tmp_path / "data")
    variables = {"name": "work", "copy_source": str(tmp_path / "data"), "copy_target": "deep/er"}
    shown = copy(controller, "--check", **variables).check().text
    assert "data would be copied to 3 containers (main1, sub1, sub2)." in " ".join(shown.split())
    assert "deep" not in session.say("sub1", "ls").split()
    assert copy(controller, **variables).check().changed == 1
    for name in NAMES:
        assert session.say(name, "cat 'deep/er/data/in side/-file one'; readlink deep/er/data/out") == "one\n/etc"
    again = copy(controller, **variables).check()
    assert again.changed == 0
    assert "sub2: nothing to copy, by rsync" in again.text


def test_an_image_without_rsync_gets_a_tar_stream(controller: Controller, bare: Session, tmp_path: Path) -> None:
    tree(tmp_path / "data")
    done = copy(controller, name="bare", copy_source=str(tmp_path / "data")).check()
    assert "sub1: 2 files, 14 bytes" in done.text
    assert bare.say("sub1", "cat 'data/in side/-file one'; test -x data/run && echo executable") == "one\nexecutable"


def test_files_come_back_into_a_folder_for_each_container(
    controller: Controller, session: Session, tmp_path: Path
) -> None:
    for name in NAMES:
        session.say(
            name, f"mkdir -p res && echo {name} >res/who && ln -sf /etc/passwd res/link && touch 'res/{'n' * 200}'"
        )
    done = copy(
        controller, name="work", copy_direction="from", copy_source="res", copy_target=str(tmp_path / "got")
    ).check()
    assert [(tmp_path / "got" / name / "res" / "who").read_text() for name in NAMES] == [f"{name}\n" for name in NAMES]
    assert not os.path.lexists(tmp_path / "got" / "sub1" / "res" / "link")
    assert (tmp_path / "got" / "sub1" / "res" / ("n" * 200)).exists()
    assert "sub1: 2 files, 5 bytes, 1 links or devices left out" in done.text


def test_a_copy_that_fails_in_one_container_goes_on_in_the_others(
    controller: Controller, session: Session, tmp_path: Path
) -> None:
    session.say("sub1", "mkdir -p only && echo here >only/file")
    done = copy(controller, name="work", copy_direction="from", copy_source="only", copy_target=str(tmp_path / "got"))
    assert done.code == 2
    assert "The copy failed in 2 of 3 containers: main1 (" in done.message
    assert (tmp_path / "got" / "sub1" / "only" / "file").read_text() == "here\n"


def test_a_link_on_the_controller_is_not_followed(controller: Controller, session: Session, tmp_path: Path) -> None:
    session.say("main1", "mkdir -p res && echo new >res/who")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "who").write_text("old\n")
    (tmp_path / "got" / "main1").mkdir(parents=True)
    (tmp_path / "got" / "main1" / "res").symlink_to(tmp_path / "outside")
    options = {"copy_direction": "from", "copy_source": "res", "copy_containers": ["main1"]}
    copy(controller, name="work", copy_target=str(tmp_path / "got"), **options).check()
    assert (tmp_path / "outside" / "who").read_text() == "old\n"
    assert (tmp_path / "got" / "main1" / "res" / "who").read_text() == "new\n"
