# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks as an agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import OtherEngineError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    EngineError,
    LibraryError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.swarm_plan import ChangedNode
from ansible_collections.cluster.compute.plugins.module_utils._steps import runtime
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import AgentHandle

REFERENCE = {"Config": {"Labels": {"cluster.compute.image": "0123"}}, "RootFS": {"Layers": ["sha256:a"]}}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of all programs of a host: its engine's, which answers."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(runtime, "_SBIN", "")
    program(tmp_path / "docker")
    return tmp_path


def program(path: Path, code: int = 0) -> None:
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)


def examined(
    monkeypatch: pytest.MonkeyPatch,
    image: Any = None,
    error: Exception | None = None,
    found: Json | None = None,
    **params: Any,
) -> Json:
    def info(_engine: Any) -> EngineInfo:
        if error:
            raise error
        return EngineInfo.of({"Runtimes": {"runc": {}}, **(found or {})})

    monkeypatch.setattr(runtime.Engine, "info", info)
    monkeypatch.setattr(runtime.Engine, "image", lambda _engine, _name: image)
    monkeypatch.setattr(runtime.Engine, "volumes", lambda _engine, _label: [])
    return runtime.examine(AgentHandle("a1", "unix:///nowhere.sock"), ["docker"], **params)


def test_an_engine_with_the_image_and_without_the_runtime(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, REFERENCE)
    assert (found["engine"], found["sdk"], found["image"], found["has_runtime"]) == (True, True, "0123", False)
    assert (found["swarm"], found["firewalls"], found["has_users"]) == (None, [], True)
    assert found["is_root"] == (os.geteuid() == 0)
    assert examined(monkeypatch)["image"] == ""


def test_a_host_without_ipv4_is_refused_before_anything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "own_address", lambda _wanted: "")
    with pytest.raises(StateError, match=r"a1 has no IPv4 address, .* set agent_swarm to false"):
        examined(monkeypatch, error=EngineError("no engine", "a1"), in_swarm=True, addresses=["2001:db8::1"])
    assert examined(monkeypatch, REFERENCE)["sdk"]


def test_an_engine_that_can_join_no_swarm_is_refused(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "own_address", lambda _wanted: "192.0.2.1")
    monkeypatch.setattr(runtime.swarm, "describe", lambda _agent, _addresses, deadline: ChangedNode())
    keeping = {"LiveRestoreEnabled": True}
    with pytest.raises(StateError, match=r"^The engine of a1 has live-restore, .* set agent_swarm to false\.$"):
        examined(monkeypatch, REFERENCE, found=keeping, in_swarm=True)
    assert examined(monkeypatch, REFERENCE, found=keeping)["engine"]


def test_the_role_needs_the_program_of_the_engine_too(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "docker").unlink()
    assert not examined(monkeypatch, REFERENCE)["engine"]


def test_a_firewall_is_one_whose_program_is_there(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs / "ufw", code=1)
    assert examined(monkeypatch, REFERENCE)["firewalls"] == ["ufw"]


def test_only_members_of_the_group_are_users(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_members", lambda: ["ann", "bob"])
    assert examined(monkeypatch, users=["bob"])["has_users"]
    assert not examined(monkeypatch, users=["bob", "eve"])["has_users"]


@pytest.mark.parametrize("code", [0, 1])
def test_without_the_sdk_the_program_asks_the_engine(
    programs: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    program(programs / "docker", code)
    found = examined(monkeypatch, error=LibraryError("docker", ""))
    assert (found["sdk"], found["engine"]) == (False, code == 0)
    (programs / "docker").unlink()
    assert not examined(monkeypatch, error=LibraryError("docker", ""))["engine"]


def test_an_engine_that_does_not_answer_is_an_error_only_where_it_is_needed(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = EngineError("The engine of a1 does not answer.", "a1")
    program(programs / "docker", code=1)
    found = examined(monkeypatch, error=silent)
    assert (found["sdk"], found["engine"], "image" in found) == (True, False, False)
    with pytest.raises(EngineError, match="does not answer"):
        examined(monkeypatch, error=silent, needed=True)


def test_what_the_sdk_says_of_an_engine_that_answers_its_program_is_the_error(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs / "docker", code=0)
    with pytest.raises(EngineError, match="cannot be used"):
        examined(monkeypatch, error=EngineError("The engine of a1 cannot be used: not supported URL scheme.", "a1"))


@pytest.mark.parametrize("code", [0, 1])
def test_no_engine_is_installed_where_podman_answers(
    programs: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Its program docker may refuse the options of Docker's."""
    program(programs / "docker", code)
    with pytest.raises(OtherEngineError):
        examined(monkeypatch, error=OtherEngineError("The engine of a1 is Podman.", "a1"))
