# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of the environment slurm: the configuration, the state of nodes, the variables of a job. tests/large runs Slurm itself."""

from __future__ import annotations

import importlib.util
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "roles/image/files/environments/slurm"
IDLE = ["main1", "idle", "none", "Unknown"]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slurm_session", FOLDER / "slurm-session.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def node(state: str, reason: str = "none", ago: float = 0) -> list[str]:
    since = (datetime.now() - timedelta(seconds=ago)).isoformat(timespec="seconds")
    return ["sub1", state, reason, since]


@pytest.mark.parametrize(
    ("found", "dead", "fresh", "waits"),
    [
        (("idle",), [], False, False),
        (("unknown*",), [], False, True),
        (("allocated*",), [], False, True),
        (("drained", "by hand"), [], False, False),
        (("down", "by hand"), [], False, False),
        (("down*", "Not responding", 10), ["sub1"], True, True),
        (("down*", "Not responding", 90), ["sub1"], False, True),
    ],
)
def test_the_state_of_a_node(
    program: ModuleType, found: tuple[Any, ...], dead: list[str], fresh: bool, waits: bool
) -> None:
    nodes = [IDLE, node(*found)]
    assert program.dead(nodes) == dead
    assert program.is_fresh(nodes) == fresh
    assert program.waits(nodes) == waits
    assert program.waits(None)


@pytest.mark.parametrize(("gpus", "gres"), [(0, ""), (2, " Gres=gpu:2")])
def test_all_nodes_have_the_limits_of_this_container(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, gpus: int, gres: str
) -> None:
    monkeypatch.setattr(program, "gpu_files", lambda: [f"/dev/nvidia{number}" for number in range(gpus)])
    monkeypatch.setattr(program, "cpu_count", lambda: 4)
    monkeypatch.setattr(program, "memory_size", lambda: 1024)
    lines = program.slurm_conf(["main1", "sub1"], Path("/tmp/.slurm/id")).splitlines()
    assert f"NodeName=main1,sub1 CPUs=4 RealMemory=1024{gres} State=UNKNOWN" in lines
    assert {"SlurmctldHost=main1", "DefMemPerCPU=256", "StateSaveLocation=/tmp/.slurm/id"} <= set(lines)


@pytest.mark.parametrize(
    ("plugins", "default"), [(["/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so"], "pmix"), ([], "none")]
)
def test_srun_uses_pmix_where_slurm_has_its_plugin(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, plugins: list[str], default: str
) -> None:
    """Debian 12 and 13 have it, and later releases do not: without its plugin, no task would start."""
    monkeypatch.setattr(program.glob, "glob", lambda pattern: plugins if pattern.endswith("/mpi_pmix.so") else [])
    assert f"MpiDefault={default}" in program.slurm_conf(["main1", "sub1"], Path("/tmp/.slurm/id")).splitlines()


def test_each_gpu_of_a_container_is_a_gres(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"/dev/nvidia[0-9]*": ["/dev/nvidia10", "/dev/nvidia2"]}
    monkeypatch.setattr(program.glob, "glob", lambda pattern: found.get(pattern, []))
    monkeypatch.setattr(program, "start", lambda *_arguments: None)
    monkeypatch.setattr(program, "output", lambda *_command: "slurm 24.11.5")
    for name, path in (("BASE", tmp_path / "slurm"), ("ETC", tmp_path / "slurm/etc")):
        monkeypatch.setattr(program, name, path)
    program.prepare({"key": "00ff", "config": "ClusterName=session"})
    lines = (tmp_path / "slurm/etc/gres.conf").read_text().splitlines()
    assert lines == ["Name=gpu File=/dev/nvidia2", "Name=gpu File=/dev/nvidia10"]


def task(**variables: str) -> set[str]:
    """What TaskProlog changes in the environment of a task."""
    environment = {"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": "sub1", **variables}
    command = ["sh", str(FOLDER / "task-prolog.sh")]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines())


def test_a_job_script_and_a_direct_step_lose_the_variables_of_a_container() -> None:
    own = {"export BACKENDAI_CLUSTER_HOST=sub1"}
    script, step = task(), task(SLURM_STEP_ID="0")
    assert own | {"unset RANK", "unset NODE_RANK", "unset TF_CONFIG"} <= step < script
    assert {"unset WORLD_SIZE", "unset MASTER_ADDR", "unset PET_NNODES"} <= script - step
    (mark,) = (line for line in script - own if line.startswith("export"))
    name, _equals, value = mark.removeprefix("export ").partition("=")
    assert task(SLURM_STEP_ID="0", **{name: value}) == own, "what a script sets reaches its steps"
