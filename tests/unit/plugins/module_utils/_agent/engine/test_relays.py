# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a relay gets from the image of ``main1``."""

from __future__ import annotations

from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.relays import Relays, relay_body
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import RUNTIME_PATH
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    EngineError,
    InputError,
)

MAIN = {
    "Id": "m",
    "ImageID": "sha256:0",
    "Names": ["/alice.train.main1"],
    "Labels": {},
    "Mounts": [{"Name": "runtime", "Destination": RUNTIME_PATH}],
    "NetworkSettings": {"Networks": {"n": {"IPAMConfig": {"IPv4Address": "10.0.0.2"}}}},
}


def body() -> dict[str, Any]:
    return relay_body(MAIN, App(name="web", port=80), 30001, {})


def test_a_relay_of_a_cuda_image_sees_no_gpu() -> None:
    assert body()["Env"] == ["NVIDIA_VISIBLE_DEVICES=void"]


def test_a_relay_keeps_no_log_on_the_disk_of_its_agent() -> None:
    assert body()["HostConfig"]["LogConfig"] == {"Type": "none"}


def test_a_relay_has_no_rights_beyond_its_connections() -> None:
    """It is in the network of its session, and its port may be open to the world."""
    made = body()
    host = made["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"], host["ReadonlyRootfs"]) == (["ALL"], ["no-new-privileges"], True)
    assert "CapAdd" not in host
    assert (made["User"].split(":")[0] not in ("", "0", "root"), host.get("Privileged", False)) == (True, False)


@pytest.mark.parametrize(
    ("ssh", "public", "places"),
    [(["0.0.0.0"], True, ["0.0.0.0"]), (["0.0.0.0", "::"], True, ["0.0.0.0", "::"]), (["::"], False, ["127.0.0.1"])],
)
def test_a_relay_is_reached_in_the_families_in_which_main1_is(ssh: list[str], public: bool, places: list[str]) -> None:
    ports = [{"IP": address, "PrivatePort": 22, "PublicPort": 30000, "Type": "tcp"} for address in ssh]
    made = relay_body({**MAIN, "Ports": ports}, App("web", 80, public=public), 30001, {})
    [bound] = made["HostConfig"]["PortBindings"].values()
    assert bound == [{"HostIp": place, "HostPort": "30001"} for place in places]


def test_on_the_network_of_its_agent_an_app_has_no_relay() -> None:
    class Engine:
        def containers(self, _session: str) -> list[dict[str, Any]]:
            return []

    main = {"Id": "m", "Labels": {label.SESSION: "s"}, "HostConfig": {"NetworkMode": "host"}}
    relays = Relays(Engine(), main, (30000, 30001))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="session_network host: the app listens at its own port of the agent"):
        relays.change([App(name="web", port=8000)], [])
    assert not relays.change([], ["web"])


def test_a_relay_leaves_the_ports_of_sessions_on_the_network_of_its_agent_alone() -> None:
    ports = (Port("ssh", 30000, "127.0.0.1", 30000),)
    other = plan(request(network="host"), "a", ports=ports, master_port=30001, hosts={"a": ("192.0.2.5", "ens1")}).main
    refused = {"msg": "no port is free"}

    class Engine:
        agent = "a"
        tried: list[int] = []

        def containers(self, _session: str = "", everyone: bool = False) -> list[dict[str, Any]]:
            return [{"Labels": dict(other.labels), "Names": ["/" + other.name], "Ports": []}] if everyone else []

        def create(self, _name: str, payload: dict[str, Any], _what: str) -> str:
            self.tried += [
                int(one["HostPort"]) for bound in payload["HostConfig"]["PortBindings"].values() for one in bound
            ]
            raise EngineError(refused["msg"], "a")

    main = {**MAIN, "Labels": dict(plan(request()).main.labels), "HostConfig": {"NetworkMode": "n"}}
    with pytest.raises(EngineError, match=refused["msg"]):
        Relays(Engine(), main, (30000, 30002)).change([App(name="web", port=8000)], [])  # type: ignore[arg-type]
    assert Engine.tried == [30002]


def test_a_relay_whose_main1_has_ended_meanwhile_is_not_left_over() -> None:
    """An engine answers 409 for a relay in the processes of a container that does not run."""

    class Engine:
        agent = "a"
        there: list[str] = []

        def containers(self, _session: str = "", everyone: bool = False) -> list[dict[str, Any]]:
            return []

        def create(self, name: str, _payload: dict[str, Any], _what: str) -> str:
            self.there.append(name)
            return name

        def start(self, _identity: str, _what: str) -> None:
            raise ConflictError("cannot join PID of a non running container")

        def remove(self, identity: str, _what: str) -> None:
            self.there.remove(identity)

    main = {**MAIN, "Labels": dict(plan(request()).main.labels), "HostConfig": {"NetworkMode": "n"}}
    with pytest.raises(ConflictError, match="cannot join PID"):
        Relays(Engine(), main, (30000, 30002)).change([App(name="web", port=8000)], [])  # type: ignore[arg-type]
    assert Engine.there == []
