# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A floor beside what an engine keeps of an earlier run; a kernel that starts.py leaves as it was; ratios of rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

BENCH = Path(__file__).resolve().parents[1] / "bench"
# A launch that is killed while a setting of the kernel is changed.
KILLED = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
from starts import guarded
with guarded(f"echo 1 >{sys.argv[2]}", f"echo 0 >{sys.argv[2]}"):
    assert pathlib.Path(sys.argv[2]).read_text() == "1\\n"
    os.kill(os.getpid(), 9)
"""


def test_a_floor_runs_beside_networks_that_the_engine_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from overlay import ThreeAgents

    kept = {"bench-floor"}
    agents = ThreeAgents("reference")

    def shell(_agent: str, script: str) -> str:
        if script.startswith("docker network create "):
            name = script.rsplit(maxsplit=1)[-1]
            assert name not in kept, f"network {name} already exists"
            kept.add(name)
        return "1.5\n"

    monkeypatch.setattr(agents, "_shell", shell)
    assert [agents.floor(12), agents.floor(12)] == [(1.5, 1.5)] * 2
    assert len(kept) == 3


def test_a_setting_of_the_kernel_is_put_back_when_a_launch_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from starts import guarded

    setting = tmp_path / "setting"

    def fail() -> None:
        with guarded(f"echo 1 >{setting}", f"echo 0 >{setting}"):
            raise RuntimeError("no launch after " + setting.read_text())

    with pytest.raises(RuntimeError, match="no launch after 1"):
        fail()
    assert setting.read_text() == "0\n"
    with pytest.raises(OSError, match="false failed"), guarded("false", f"echo 2 >{setting}"):
        pass
    assert setting.read_text() == "0\n"


def test_a_setting_of_the_kernel_is_put_back_when_the_benchmark_is_killed(tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(BENCH), str(setting)], check=False, timeout=60)
    assert killed.returncode == -9
    assert wait_until(lambda: setting.read_text() == "0\n", deadline_in(30))


def test_a_ratio_of_starts_is_that_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from starts import table

    times = {("agent1", "bridge", 16): {"as is": [1.0, 4.0, 2.0], "rcu_expedited": [0.5, 1.0, 3.0]}}
    assert table({"agent1": "26.1.5"}, times).splitlines()[2:] == ["| 26.1.5 | bridge | 16 | 2.00 | 1.00, **0.50** |"]


def test_a_part_that_misses_its_budget_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from bench import failed_parts

    (tmp_path / "slow.py").write_text("raise SystemExit('over its budget')")
    (tmp_path / "other.py").write_text(f"open({str(tmp_path / 'measured')!r}, 'w').close()")
    assert failed_parts(["slow.py", "other.py"], tmp_path) == ["slow.py"]
    assert (tmp_path / "measured").exists()


def test_a_ratio_of_networks_is_that_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from networks import HOSTS, received, table

    said = '{"end": {"sum_sent": {"bits_per_second": 4e9}, "sum_received": {"bits_per_second": 3e9}}}'
    rates = {HOSTS: [2.0, 4.0, 8.0], "private": [received(said), 1.0, 6.0]}
    assert table(rates).splitlines()[3:] == ["| private | 3.00 | **0.75** |"]
