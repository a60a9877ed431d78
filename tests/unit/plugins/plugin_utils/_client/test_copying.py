# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies between the controller and containers: places of the controller that take none."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from steps_on_a_host import eventually

from ansible_collections.cluster.compute.plugins.module_utils._shared.paths import read
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.plugin_utils._client.copying import Copy, _failed
from ansible_collections.cluster.compute.plugins.plugin_utils._client.tar_stream import TarReader


def test_a_target_that_is_no_directory_is_a_failure_of_each_container(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    # No container is reached.
    unused: Any = None
    answers = Copy(unused, "results", str(tmp_path / "file"), deadline_in(60)).from_all(["main1", "sub1"])
    places = [(host, 1, f"{tmp_path}/file/{host}: Not a directory") for host in ("main1", "sub1")]
    assert [(answer.hostname, answer.code, answer.problem) for answer in answers] == places
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_in_the_way_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    member = tarfile.TarInfo("results")
    with pytest.raises(IsADirectoryError) as refused:
        TarReader(io.BytesIO(member.tobuf()), str(tmp_path), "results", "main1").run()
    assert _failed("main1", refused.value).problem == "results: Is a directory"


COPY = """
import sys, time
from types import SimpleNamespace
from ansible_collections.cluster.compute.plugins.plugin_utils._client.copying import Copy
Copy(SimpleNamespace(config="/dev/null"), sys.argv[1], "data", time.monotonic() + 300).to_all(["main1"])
"""


def test_a_copy_ends_with_the_process_that_has_begun_it(tmp_path: Path) -> None:
    """Ansible kills the process at an interrupt. A large file would be sent on, without a deadline."""
    rsync = tmp_path / "rsync"
    rsync.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/begun\nexec sleep 300\n")
    rsync.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", COPY, str(tmp_path)], env=environment) as process:
        eventually(lambda: read(str(tmp_path / "begun")) != "")
        process.kill()
    number = (tmp_path / "begun").read_text().strip()
    try:
        eventually(lambda: "sleep" not in read(f"/proc/{number}/cmdline"))
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)
