# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program in the overlay network, with three of it on this machine's loopback addresses."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents import overlay_endpoint
from ansible_collections.cluster.compute.plugins.module_utils._agents.overlay_probe import read_lines

SOURCE = Path(overlay_endpoint.__file__)
CALL = "import sys, json\nsys.path.insert(0, sys.argv[1])\nimport overlay_endpoint\noverlay_endpoint.main(json.loads(sys.argv[2]), 60, sys.argv[3])"
ADDRESSES = {"agent1": "127.0.78.1", "agent2": "127.0.78.2", "agent3": "127.0.78.3"}


def options(name: str, seconds: float, silent: str) -> dict[str, Any]:
    peers = [
        {"name": peer, "host": address, "address": "127.0.78.99" if peer == silent else address}
        for peer, address in ADDRESSES.items()
        if peer != name
    ]
    return {"name": name, "address": ADDRESSES[name], "mtu": 1450, "seconds": seconds, "budget": 20, "peers": peers}


@pytest.fixture
def network(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run three of them, and return what each has found. Nothing answers for the silent one."""

    def run(seconds: float, silent: str = "") -> dict[str, Any]:
        go, texts = tmp_path / "go", {}
        with ExitStack() as stack:
            processes = {}
            for name in ADDRESSES:
                command = [
                    sys.executable,
                    "-c",
                    CALL,
                    str(SOURCE.parent),
                    json.dumps(options(name, seconds, silent)),
                    str(go),
                ]
                process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
                stack.callback(process.kill)
                processes[name] = process
            for process in processes.values():
                assert process.stdout is not None
                assert process.stdout.readline() == '["listening"]\n'
            go.touch()
            for name, process in processes.items():
                assert process.stdout is not None
                texts[name] = "".join(iter(process.stdout.readline, '["done"]\n')) + '["done"]\n'
            # The first that is done still hears the others.
            for name, process in processes.items():
                assert process.stdout is not None
                process.kill()
                texts[name] += process.stdout.read()
        return {name: read_lines(text) for name, text in texts.items()}

    return run


def test_every_pair_is_measured(network: Callable[..., dict[str, Any]]) -> None:
    found = network(0.05)
    for name, result in found.items():
        others = sorted(set(ADDRESSES) - {name})
        assert result["measured"] is True
        assert result["names"] == {other: ADDRESSES[other] for other in others}
        assert sorted(result["heard"]) == [[other, size] for other in others for size in ("full", "small")]
        assert sorted(result["latency"]) == sorted(result["mbits"]) == others
        assert all(rate > 0 for rate in result["mbits"].values())


def test_a_silent_peer_is_not_measured_and_does_not_stop_the_others(network: Callable[..., dict[str, Any]]) -> None:
    found = network(0.05, silent="agent3")
    assert sorted(found["agent1"]["mbits"]) == ["agent2"]
    assert sorted(found["agent1"]["latency"]) == ["agent2"]
    assert ["agent1", "small"] not in found["agent3"]["heard"]


def test_without_seconds_no_throughput_is_measured(network: Callable[..., dict[str, Any]]) -> None:
    assert [found["mbits"] for found in network(0).values()] == [{}, {}, {}]


def test_lines_that_are_no_results_are_ignored() -> None:
    text = '["listening"]\nTraceback\n{"heard": 1}\n["heard", "a"]\n["mbits", "a", "fast"]\n["latency", "a", 0.2]\n3\n'
    assert read_lines(text) == {"names": {}, "heard": [], "latency": {"a": 0.2}, "mbits": {}, "measured": False}


def test_its_source_runs_by_itself() -> None:
    """It is passed to an image that has nothing but Python."""
    tree = ast.parse(SOURCE.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"json", "os", "random", "socket", "sys", "threading", "time"}
