# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that keep containers out of overlays, as a report sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents.guard import overlay_guard

ANSWERS = [
    ("echo '-N CLUSTER-COMPUTE'; echo '-A CLUSTER-COMPUTE -i docker0 -j DROP'", "present"),
    ("echo '-N CLUSTER-COMPUTE'", "missing"),
    ("echo 'iptables: No chain/target/match by that name.' >&2; exit 1", "missing"),
    (
        "echo 'iptables v1.8.9 (nf_tables): chain `CLUSTER-COMPUTE` in table `mangle` does not exist' >&2; exit 1",
        "missing",
    ),
    ("echo 'Permission denied (you must be root)' >&2; exit 4", ""),
]


@pytest.mark.parametrize(("script", "found"), ANSWERS)
def test_the_rules_are_seen_where_the_user_may_see_them(
    script: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "iptables"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert overlay_guard() == found
