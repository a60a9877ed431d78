# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person sees who runs the playbooks of the checkout: few lines, tables, one sentence for a failure, a live line."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import slow_registry
from controller import ROOT, SMALL, Controller, Done, run_playbook
from docker.errors import ImageNotFound
from example_images import REFERENCE
from servers import free_port, is_open

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until


def environment(controller: Controller) -> dict[str, str]:
    """Without the setting of the tests: ansible.cfg of the checkout decides."""
    return {name: value for name, value in controller.environment.items() if name != "ANSIBLE_STDOUT_CALLBACK"}


def play(controller: Controller, playbook: str, *arguments: str, **variables: Any) -> Done:
    return run_playbook(controller.command(playbook, *arguments, **variables), environment(controller))


@contextmanager
def registry(seconds: int) -> Iterator[str]:
    """The reference of an image whose pull takes its time."""
    port = free_port()
    program = [sys.executable, slow_registry.__file__, str(port), str(seconds)]
    with subprocess.Popen(program, stderr=subprocess.DEVNULL) as process:
        try:
            assert wait_until(lambda: is_open(port), deadline_in(30))
            yield f"127.0.0.1:{port}/{slow_registry.NAME}"
        finally:
            process.kill()


def test_a_launch_prints_at_most_sixteen_lines(controller: Controller) -> None:
    variables = {"session_name": "seen", "session_cluster_size": 3, "session_explain": True, **SMALL}
    done = play(controller, "cluster_session", **variables).check()
    # On a busy machine, a phase may also show that it goes on.
    lines = [line for line in done.text.splitlines() if not line.startswith("  … ")]
    assert len(lines) <= 16, done.text
    assert any(re.fullmatch(r"Creating 3 containers +\d+\.\d s", line) for line in lines), done.text
    assert "Session seen: RUNNING (cluster session, single-node)" in lines
    explained = r"\d+\.\d s: .*\d\.\d s starting 3 containers on \S+, .*\d\.\d s outside of these tasks\."
    assert any(re.fullmatch(explained, line) for line in lines), done.text
    trace = json.loads((controller.artifacts / "seen/trace.json").read_text())
    shown = {(event.get("cat"), event["name"]) for event in trace["traceEvents"]}
    assert {("phase", "Starting 3 containers"), ("step", "containers.started"), ("engine", "start it")} <= shown
    assert "TASK" not in done.text


def test_a_table_is_a_table(controller: Controller) -> None:
    lines = play(controller, "sessions").check().text.splitlines()
    header = next(line for line in lines if line.startswith("SESSION "))
    row = next(line for line in lines if line.startswith("seen "))
    assert header.index("STATE") == row.index("RUNNING")


@pytest.mark.parametrize(
    ("playbook", "variables", "kind"),
    [
        ("sessions", {"sessions_format": "json"}, dict),
        ("policy", {"policy_format": "json"}, dict),
        ("usage", {"usage_format": "json"}, list),
    ],
)
def test_json_on_the_standard_output_is_json_alone(
    controller: Controller, playbook: str, variables: dict[str, str], kind: type
) -> None:
    command = controller.command(playbook, **variables)
    done = subprocess.run(command, cwd=ROOT, env=environment(controller), capture_output=True, text=True, check=True)
    assert isinstance(json.loads(done.stdout), kind)
    assert "Checking the request" in done.stderr


def test_a_failure_is_one_sentence_once(controller: Controller) -> None:
    done = play(controller, "cluster_session", session_name="refused", session_cpus=0.001)
    assert done.code == 2
    phase, sentence = done.text.splitlines()
    assert phase.startswith("Checking the request ")
    assert sentence == "session_cpus: '0.001': must be at least 0.01."
    script = "echo preparing; exit 4"
    done = play(controller, "cluster_session", session_name="undone", session_bootstrap=script, **SMALL)
    assert done.code == 2
    assert done.text.count("was not launched") == 1, done.text
    assert done.text.splitlines()[-1].startswith("Session undone was not launched: ")


def test_the_bytes_of_a_pull(controller: Controller) -> None:
    """The pull takes longer than the ten seconds after which a log gets a line."""
    with registry(14) as reference:
        try:
            done = play(controller, "cluster_session", session_name="pulls", session_image=reference, **SMALL).check()
        finally:
            controller.terminate("pulls")
            controller.client.remove_image(reference, force=True)
    assert re.search(r"^  … Pulling the image, \d\S* of 3m, \d+ s$", done.text, re.MULTILINE), done.text
    assert re.search(r"^Pulling the image +\d+\.\d s$", done.text, re.MULTILINE), done.text
    assert "Preparing the image" not in done.text


def test_the_bytes_of_a_build(controller: Controller, tmp_path: Path) -> None:
    """The files of an environment beside a playbook are found as those of the role."""
    files = tmp_path / "files/environments/slow"
    files.mkdir(parents=True)
    write = "for second in $(seq 15); do head -c 3000000 /dev/zero >> /zeros; sleep 1; done"
    (files / "Dockerfile").write_text(f"ARG BASE\nFROM $BASE\nARG MARK\nRUN echo $MARK; {write}\n")
    image = f"cluster-compute-test/{controller.owner}:1"
    environment = {"name": "slow", "image": image, "base": REFERENCE}
    role = {"name": "cluster.compute.image", "tasks_from": "environment.yml"}
    task = {"ansible.builtin.include_role": role, "vars": {"__image_environment": environment}}
    (tmp_path / "slow.yml").write_text(json.dumps([{"hosts": "agents", "gather_facts": False, "tasks": [task]}]))
    playbook, arguments = os.path.relpath(tmp_path / "slow", ROOT / "playbooks"), {"MARK": image}
    try:
        planned = play(controller, playbook, "--check", image_build_arguments=arguments).check()
        assert f"{image} would be built from {REFERENCE}." in planned.text
        done = play(controller, playbook, image_build_arguments=arguments).check()
        assert play(controller, playbook, "-v").check().changed == 0
    finally:
        with suppress(ImageNotFound):
            controller.client.remove_image(image, force=True)
    line = r"^  … Preparing the image: Build the image from the files, \d\S*m, \d+ s$"
    assert re.search(line, done.text, re.MULTILINE), done.text


def test_the_bytes_of_a_program_that_fills_a_folder(controller: Controller, tmp_path: Path) -> None:
    folder = tmp_path / "filled"
    folder.mkdir(mode=0o700)
    write = f"for second in $(seq 15); do head -c 3000000 /dev/zero >> {folder}/zeros; sleep 1; done"
    fill = {"call": "image.fill", "params": {"argv": ["sh", "-c", write], "folder": str(folder)}}
    task = {"name": "Install", "cluster.compute.agent_step": fill}
    examined = {"cluster.compute.agent_info": {"name": "a"}}
    (tmp_path / "fill.yml").write_text(
        json.dumps([{"hosts": "agents", "gather_facts": False, "tasks": [examined, task]}])
    )
    done = play(controller, os.path.relpath(tmp_path / "fill", ROOT / "playbooks")).check()
    assert re.search(r"^  … Collecting agent reports, \d\S*m, \d+ s$", done.text, re.MULTILINE), done.text


def test_details_are_ansibles_own_output(controller: Controller) -> None:
    assert "PLAY RECAP" in play(controller, "sessions", "-v").check().text


def test_output_of_a_command_and_its_failure(controller: Controller) -> None:
    done = play(
        controller, "session_exec", session_name="seen", session_exec_command="echo $BACKENDAI_CLUSTER_HOST; exit 3"
    )
    lines = done.text.splitlines()
    assert {"main1: main1", "sub1: sub1", "sub2: sub2"} <= set(lines)
    assert lines[-1].startswith("The command failed in 3 of 3 containers: main1 (exit code 3), ")
    assert done.text.count("The command failed in") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_launch_says_what_it_leaves_and_how_to_go_on(
    number: signal.Signals, controller: Controller
) -> None:
    """Ctrl-C sends SIGINT to the whole process group."""
    variables = {"session_name": "broken-off", "session_bootstrap": "sleep 600", **SMALL}
    command = controller.command("cluster_session", **variables)
    options: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "start_new_session": True,
    }
    with subprocess.Popen(command, cwd=ROOT, env=environment(controller), **options) as process:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if "Starting" in line:  # the sign of life of a long phase
                break
        os.killpg(process.pid, number)
        rest = process.stdout.read()
    text = "".join(seen) + rest
    assert (
        "Session broken-off may be left unfinished: run the same command again to continue, or end it with" in text
    ), text
    assert "terminate.yml -e session_name=broken-off" in text
    assert text.count("Interrupted") == 1
    controller.terminate("broken-off").check()
    assert controller.engine("broken-off") == {}


@pytest.mark.parametrize("has_result", [True, False])
def test_a_terminal_has_a_live_line(controller: Controller, tmp_path: Path, has_result: bool) -> None:
    """The live line is erased before the next line, also where the result goes to a file."""
    main, side = pty.openpty()
    command = controller.command(
        "cluster_session", session_name=f"live-{has_result}".lower(), session_bootstrap="sleep 3", **SMALL
    )
    terminal = {**environment(controller), "TERM": "xterm"}
    with (tmp_path / "result").open("w+") as file:
        output = side if has_result else file
        with subprocess.Popen(command, cwd=ROOT, env=terminal, stdin=side, stdout=output, stderr=side) as process:
            os.close(side)
            text = _read(main)
            process.wait()
        os.close(main)
        file.seek(0)
        result = text if has_result else file.read()
    assert process.returncode == 0, text
    assert set(re.findall(r"\r\x1b\[2KStarting 1 container, \d+ s(....)", text)) == {"\r\x1b[2"}, text
    assert re.search(r"Session live-\w+: RUNNING", result)


def _read(terminal: int) -> str:
    """Everything until the last process has closed its end."""
    content = b""
    deadline = time.monotonic() + 180
    with suppress(OSError):
        while time.monotonic() < deadline and (block := os.read(terminal, 65536)):
            content += block
    return content.decode("utf-8", "replace")
