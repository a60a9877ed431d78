# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that keep containers out of overlays, as a report sees them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent import guard
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import OverlayGuard

NO_RIGHTS = "echo 'Permission denied (you must be root)' >&2; exit 4"
DROP = "-A CLUSTER-COMPUTE -i docker0 -j DROP"
MISSING, UNSEEN = OverlayGuard("missing"), OverlayGuard()


def jump(chain: str, port: int) -> str:
    return f"-A {chain} -p udp -m udp --dport {port} -j CLUSTER-COMPUTE"


def present(port: int) -> dict[str, object]:
    return OverlayGuard("present", port)


TABLES = {
    "all rules": ([jump("INPUT", 4789), jump("FORWARD", 4789), DROP], present(4789)),
    "another port": ([jump("INPUT", 7789), jump("FORWARD", 7789), DROP], present(7789)),
    "a table that was flushed": (["-P INPUT ACCEPT"], MISSING),
    "a chain to which nothing leads": ([DROP], MISSING),
    "no rule for other agents": ([jump("INPUT", 4789), DROP], MISSING),
    "two ports": ([jump("INPUT", 4789), jump("FORWARD", 7789), DROP], MISSING),
    "an empty chain": ([jump("INPUT", 4789), jump("FORWARD", 4789)], MISSING),
}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(guard, "_PATH", "")
    monkeypatch.setattr(guard, "_RECORD", str(tmp_path / "record"))
    return tmp_path / "record"


def iptables(folder: Path, script: str) -> None:
    program = folder / "iptables"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("table", TABLES)
def test_root_sees_the_rules(table: str, record: Path) -> None:
    lines, found = TABLES[table]
    iptables(record.parent, "\n".join(f"echo '{line}'" for line in lines))
    record.write_text("1234\n")
    assert guard.overlay_guard("") == found


SENDERS = "-A CLUSTER-COMPUTE-SENDERS -j DROP"


@pytest.mark.parametrize(
    ("lines", "fabric", "found"),
    [((SENDERS,), "ens2f0", present(4789)), ((), "ens2f0", MISSING), ((SENDERS,), "", present(4789))],
)
def test_an_agent_with_a_fabric_also_has_rules_for_what_comes_over_it(
    lines: tuple[str, ...], fabric: str, found: object, record: Path
) -> None:
    shown = (jump("INPUT", 4789), jump("FORWARD", 4789), DROP, *lines)
    iptables(record.parent, "\n".join(f"echo '{line}'" for line in shown))
    assert guard.overlay_guard(fabric) == found
    iptables(record.parent, NO_RIGHTS)
    record.write_text("4789 fabric\n" if lines else "4789\n")
    assert guard.overlay_guard(fabric) == found


OUT, THROUGH = (f"-A {chain} -o cc-+ -m conntrack --ctstate NEW -j DROP" for chain in ("OUTPUT", "FORWARD"))


@pytest.mark.parametrize(
    ("lines", "found"),
    [((OUT, THROUGH), "present"), ((OUT,), "missing"), ((THROUGH, DROP), "missing"), ((), "missing")],
)
def test_root_sees_the_rules_for_bridges_of_sessions(lines: tuple[str, ...], found: str, record: Path) -> None:
    iptables(record.parent, "\n".join(f"echo '{line}'" for line in lines))
    assert guard.session_guard(EngineInfo()) == found


def test_any_other_user_sees_the_record_of_the_rules_for_bridges_too(record: Path) -> None:
    iptables(record.parent, NO_RIGHTS)
    assert guard.session_guard(EngineInfo()) == "missing"
    record.write_text("0\n")
    assert guard.session_guard(EngineInfo()) == "present"


def test_the_bridges_of_a_rootless_engine_are_not_on_the_host(record: Path) -> None:
    iptables(record.parent, "true")
    assert guard.session_guard(EngineInfo(security=("name=seccomp,profile=default", "name=rootless"))) == ""


@pytest.mark.parametrize("has_program", [True, False])
@pytest.mark.parametrize(
    ("age", "has_systemd", "found"),
    [(0, True, present(7789)), (3600, True, MISSING), (3600, False, UNSEEN), (None, False, MISSING)],
)
def test_any_other_user_sees_the_record_of_them(
    age: int | None, has_systemd: bool, found: object, has_program: bool, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_program:
        iptables(record.parent, NO_RIGHTS)
    if age is not None:
        record.write_text("7789\n")
        os.utime(record, (time.time() - age,) * 2)
    monkeypatch.setattr(guard, "has_systemd", lambda: has_systemd)
    assert guard.overlay_guard("") == found


def test_a_comment_of_another_rule_may_be_in_any_encoding(record: Path) -> None:
    rule = r'printf "%s f\374r %s\n" "-A INPUT -m comment --comment" "-j ACCEPT"'
    lines = [jump("INPUT", 4789), jump("FORWARD", 4789), DROP]
    iptables(record.parent, "\n".join([rule, *(f"echo '{line}'" for line in lines)]))
    assert guard.overlay_guard("") == present(4789)
