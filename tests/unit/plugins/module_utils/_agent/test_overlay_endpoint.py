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

from ansible_collections.cluster.compute.plugins.module_utils._agent import overlay_endpoint
from ansible_collections.cluster.compute.plugins.module_utils._agent.examination import read_overlay
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import InOverlay

SOURCE = Path(overlay_endpoint.__file__)
CALL = "import sys, json\nsys.path.insert(0, sys.argv[1])\nimport overlay_endpoint\noverlay_endpoint.main(json.loads(sys.argv[2]), 60, sys.argv[3])"
ADDRESSES = {"agent1": "127.0.78.1", "agent2": "127.0.78.2", "agent3": "127.0.78.3"}


def options(name: str, silent: str) -> dict[str, Any]:
    peers = [
        {"name": peer, "host": address, "address": "127.0.78.99" if peer == silent else address}
        for peer, address in ADDRESSES.items()
        if peer != name
    ]
    return {"name": name, "address": ADDRESSES[name], "mtu": 1450, "seconds": 0.05, "peers": peers}


def read_to(process: subprocess.Popen[str], beginning: str) -> str:
    """What a process writes up to a line that begins so."""
    assert process.stdout is not None
    text = ""
    for line in iter(process.stdout.readline, ""):
        text += line
        if line.startswith(beginning):
            return text
    raise AssertionError(f"It has ended: {text}")


@pytest.fixture
def network(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run three of them, measure these links one after the other, and return what each has found.

    Nothing answers for the silent one.
    """

    def run(*links: tuple[str, str], silent: str = "") -> dict[str, Any]:
        texts = dict.fromkeys(ADDRESSES, "")
        with ExitStack() as stack:
            processes = {}
            for name in ADDRESSES:
                folder = tmp_path / name
                folder.mkdir()
                arguments = [str(SOURCE.parent), json.dumps(options(name, silent)), str(folder)]
                command = [sys.executable, "-c", CALL, *arguments]
                process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
                stack.callback(process.kill)
                processes[name] = process

            for name in ADDRESSES:
                texts[name] += read_to(processes[name], "listening")
            for name in ADDRESSES:
                (tmp_path / name / overlay_endpoint.GO).write_text("all\n")
            for name in ADDRESSES:
                texts[name] += read_to(processes[name], '["done"]')
            for name, peer in links:
                (tmp_path / name / overlay_endpoint.LINK).write_text(f"{peer}\n")
                texts[name] += read_to(processes[name], '["mbits"')
            # The first that is done still hears the others.
            for name, process in processes.items():
                process.kill()
                assert process.stdout is not None
                texts[name] += process.stdout.read()
        return {name: read_overlay(text) for name, text in texts.items()}

    return run


def test_every_pair_is_tested_and_each_link_is_measured(network: Callable[..., dict[str, InOverlay]]) -> None:
    found = network(("agent1", "agent2"), ("agent3", "agent1"))
    for name, result in found.items():
        others = sorted(set(ADDRESSES) - {name})
        assert result.measured is True
        assert result.names == {other: ADDRESSES[other] for other in others}
        assert sorted(result.heard) == [(other, size) for other in others for size in ("full", "small")]
        assert sorted(result.latency) == others
        assert all(spent > 0 for spent in result.latency.values())
    assert {name: list(result.mbits) for name, result in found.items()} == {
        "agent1": ["agent2"],
        "agent2": [],
        "agent3": ["agent1"],
    }
    assert found["agent1"].mbits["agent2"] > 0


def test_a_silent_peer_does_not_stop_the_others(network: Callable[..., dict[str, InOverlay]]) -> None:
    found = network(("agent1", "agent3"), silent="agent3")
    assert sorted(found["agent1"].latency) == ["agent2"]
    assert found["agent1"].mbits == {"agent3": 0.0}
    assert ("agent1", "small") not in found["agent3"].heard


def test_lines_that_are_no_results_are_ignored() -> None:
    text = 'listening\nTraceback\n{"heard": 1}\n["heard", "a"]\n["mbits", "a", "fast"]\n["latency", "a", 0.2]\n["latency", "b", null]\n[[3\n'
    latency = {"a": 0.2, "b": None}
    assert read_overlay(text) == InOverlay(latency=latency)


def test_its_source_runs_by_itself() -> None:
    """It is passed to an image that has nothing but Python."""
    tree = ast.parse(SOURCE.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"json", "os", "socket", "sys", "threading", "time"}
