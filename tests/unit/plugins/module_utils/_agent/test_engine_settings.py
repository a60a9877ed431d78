# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of an engine with which sessions lose something."""

from __future__ import annotations

import doctest
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent import engine_settings
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError


@pytest.mark.parametrize(
    ("info", "arguments", "text", "found"),
    [
        (EngineInfo(), "dockerd", "", []),
        (EngineInfo(log_driver="json-file"), "dockerd", "{}", []),
        (EngineInfo(security=("name=seccomp,profile=default", "name=userns")), "", "[", ["userns-remap"]),
        (EngineInfo(), "", '{"no-new-privileges": true}', ["no-new-privileges"]),
        (EngineInfo(), "dockerd\0--no-new-privileges", "[]", ["no-new-privileges"]),
        (EngineInfo(log_driver="none"), "", "", ["log-driver none"]),
        (EngineInfo(), "", '{"iptables": false, "userland-proxy": false}', ["iptables false", "userland-proxy false"]),
        (EngineInfo(), "dockerd\0--iptables=false", "{}", ["iptables false"]),
        (EngineInfo(), "dockerd\0--userland-proxy=true\0--iptables", '{"ipv6": true}', []),
    ],
)
def test_what_takes_something_from_sessions(
    info: EngineInfo, arguments: str, text: str, found: list[str], tmp_path: Path
) -> None:
    file, cmdline = tmp_path / "daemon.json", tmp_path / "7/cmdline"
    cmdline.parent.mkdir()
    cmdline.write_text(arguments)
    file.write_text(text)
    assert engine_settings.engine_settings(info, 7, str(tmp_path), str(file)) == found
    assert engine_settings.engine_settings(EngineInfo(), 0, str(tmp_path), str(tmp_path / "absent")) == []


def test_the_examples() -> None:
    assert doctest.testmod(engine_settings).failed == 0


@pytest.mark.parametrize(
    ("publish", "network", "text", "is_refused"),
    [
        ("::", {}, '{"userland-proxy": false}', True),
        ("fd00::1", {}, '{"userland-proxy": false}', True),
        ("0.0.0.0", {}, '{"userland-proxy": false}', False),
        ("::", {"network": "host"}, '{"userland-proxy": false}', False),
        ("::", {}, "{}", False),
    ],
)
def test_an_engine_without_its_proxy_is_not_asked_for_ports_at_ipv6(
    publish: str, network: dict[str, Any], text: str, is_refused: bool, tmp_path: Path
) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(text)
    ports = (Port("ssh", 22, publish, 30000),)
    wanted = plan(request(cluster_size=1, **network), "a", ports=ports, hosts={"a": ("192.0.2.1", "eth0")})
    with pytest.raises(StateError, match=r"IPv6.* userland-proxy is false") if is_refused else nullcontext():
        engine_settings.check_publishing(wanted, "a", 7, str(tmp_path), str(file))
    engine_settings.check_publishing(wanted, "a", 0, str(tmp_path), str(file))
