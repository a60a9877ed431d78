# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics in Prometheus itself: its checks, both ways in which it reads them, and each query of the dashboard."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lists
import pytest
from openmetrics import parsed
from prometheus_lab import Prometheus, prometheus, unpack

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import escape_control
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.files import write
from ansible_collections.cluster.compute.plugins.plugin_utils._output.metrics import metrics_text

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = 'a"} 1\n# EOF\n\\\x1b]0;title\x07\u202e'
WAITING = ("giant", "dave", 20, 4, "8g", 0)
DASHBOARD: dict[str, Any] = json.loads((ROOT / "extensions/grafana/cluster_compute.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("prometheus"))


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of metrics, one session of which has a hostile name."""
    folder = tmp_path_factory.mktemp("metrics")
    listed = lists.listed(folder, lists.few_agents(), [*lists.FEW, WAITING], lifetime=36000)
    hostile = replace(listed.sessions[0], name=HOSTILE, owner=HOSTILE)
    listed = replace(listed, sessions=(*listed.sessions, hostile))
    (folder / "read").mkdir()
    write(str(folder / "read/cluster_compute.prom"), metrics_text(listed), 0o644, check=False)
    return folder / "read/cluster_compute.prom"


@pytest.fixture(scope="module")
def server(programs: Path, metrics: Path) -> Iterator[Prometheus]:
    with prometheus(programs, metrics) as made:
        yield made


def promtool(programs: Path, *arguments: str, said: str) -> str:
    command = [str(programs / "promtool"), *arguments]
    done = subprocess.run(command, input=said, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_promtool_finds_no_fault(programs: Path, metrics: Path) -> None:
    assert promtool(programs, "check", "metrics", said=metrics.read_text()) == ""


@pytest.mark.parametrize("job", ["node", "direct"])
def test_prometheus_has_every_series(server: Prometheus, metrics: Path, job: str) -> None:
    series = parsed(metrics.read_text())
    counted = server.ask(f'count by (__name__) ({{job="{job}", __name__=~"cluster_compute_.+"}})')
    assert {one["metric"]["__name__"]: int(one["value"][1]) for one in counted} == {
        name: len(values) for name, values in series.items()
    }


def test_a_hostile_name_is_one_label(server: Prometheus) -> None:
    found = server.ask('cluster_compute_session_state{job="direct"}')
    assert escape_control(HOSTILE) in {one["metric"]["session"] for one in found}
    assert len(found) == 5


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_dashboard_has_a_result(server: Prometheus, query: str) -> None:
    assert server.ask(query)


def test_the_alerts_of_the_page_are_valid(programs: Path, tmp_path: Path) -> None:
    [rules] = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "rules.yml"
    path.write_text(rules)
    assert "2 rules found" in promtool(programs, "check", "rules", str(path), said="")
