# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which program of the runtime or of the image starts, and what it gets (roles/image/files/run_own.sh)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).parents[3] / "roles/image/files"
NAMES = ("ssh", "scp", "sftp", "setpriv", "ping")
# A program that says who it is, what it was given, and whether it has a variable that is meant for programs of the image.
SAYS = '#!/bin/sh\necho "%s ${LD_AUDIT-unset}" "$@"\n'


class Runtime:
    def __init__(self, folder: Path) -> None:
        self.folder, self.config, self.image = folder, folder / "ssh_config", folder.parent / "image"
        self.image.mkdir()
        for name in ("bin", "libexec", "unprivileged"):
            (folder / name).mkdir(parents=True)
        self._write(folder / "bin/busybox", '#!/bin/sh\nexec /usr/bin/"$@"\n')
        script = (FILES / "run_own.sh").read_text().replace("/opt/cluster-compute", str(folder))
        self._write(folder / "bin/run_own", script.replace("/etc/cluster-compute/ssh_config", str(self.config)))
        shutil.copy(FILES / "own_environment.sh", folder / "libexec")
        for name in NAMES:
            (folder / "unprivileged" / name).symlink_to("../bin/run_own")
            self._write(folder / "libexec" / name, SAYS % "own")
        self._write(folder / "libexec/setpriv", '#!/bin/sh\necho "setpriv ${LD_AUDIT-unset} $1"; shift 2; exec "$@"\n')
        self.config.write_text(
            "Host localhost\n    HostName 127.0.0.1\nHost main1 sub1 10.0.0.2 localhost\n    User work\n"
        )

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def add_to_image(self, name: str) -> None:
        self._write(self.image / name, SAYS % "image")

    def run(self, *command: str) -> str:
        path = os.pathsep.join([str(self.folder / "unprivileged"), str(self.image)])
        settings = {"PATH": path, "LD_AUDIT": "it's"}
        program = str(self.folder / "unprivileged" / command[0])
        done = subprocess.run(
            [program, *command[1:]], env=settings, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.replace(str(self.folder), "").strip()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    made = Runtime(tmp_path / "runtime")
    for name in ("ssh", "scp", "ping"):
        made.add_to_image(name)
    return made


@pytest.mark.parametrize(
    "command",
    [
        "sub1 hostname",
        "-p 22 -T alice@sub1",
        "-oBatchMode=yes -- 10.0.0.2 ssh github.com",
        "ssh://alice@sub1:22/",
        "-v localhost",
    ],
)
def test_containers_are_reached_with_the_session_s_configuration_alone(runtime: Runtime, command: str) -> None:
    assert runtime.run("ssh", *command.split()) == f"own unset -F /ssh_config {command}"


@pytest.mark.parametrize("command", ["github.com", "-p 22 git@github.com git-upload-pack sub1", "-V", "", "sub11", "*"])
def test_other_hosts_are_reached_by_the_program_of_the_image(runtime: Runtime, command: str) -> None:
    assert runtime.run("ssh", *command.split()) == f"image it's {command}".strip()


def test_a_configuration_that_the_caller_names_is_used(runtime: Runtime) -> None:
    assert runtime.run("ssh", "-F", "none", "sub1") == "own unset -F none sub1"


def test_copies_between_containers_use_the_same_connection(runtime: Runtime) -> None:
    assert runtime.run("scp", "-q", "file", "work@sub1:two") == "own unset -S /bin/ssh -q file work@sub1:two"
    assert runtime.run("scp", "scp://sub1:22/two", ".") == "own unset -S /bin/ssh scp://sub1:22/two ."
    assert runtime.run("scp", "sub1", "alice@other:sub1") == "own unset -S /bin/ssh sub1 alice@other:sub1"
    assert runtime.run("scp", "file", "alice@other:sub1") == "image it's file alice@other:sub1"
    assert runtime.run("sftp", "other") == "own unset -S /bin/ssh other"


def test_without_a_session_the_image_s_program_runs_or_else_the_runtime_s(runtime: Runtime) -> None:
    runtime.config.unlink()
    assert runtime.run("ssh", "sub1") == "image it's sub1"
    (runtime.image / "ssh").unlink()
    assert runtime.run("ssh", "sub1") == "own unset sub1"
    assert runtime.run("ping", "-c", "1", "sub1") == "own unset -c 1 sub1"


def test_a_program_that_becomes_the_user_gets_back_what_the_image_says(runtime: Runtime) -> None:
    runtime.add_to_image("program")
    answer = runtime.run("setpriv", "--init-groups", "--", str(runtime.image / "program"), "a b")
    assert answer == "setpriv unset --init-groups\nimage it's a b"
