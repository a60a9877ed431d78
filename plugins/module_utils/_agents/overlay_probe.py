# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The throw-away overlay network of a check on the engines: the network itself, and the container of each agent in it."""

from __future__ import annotations

import inspect
import json
import time
from typing import Any, Dict

from .._core.constants import LABEL_CHECK
from .._core.documents import Json
from .._core.errors import ComputeError
from .._core.model import Network
from .._core.waiting import deadline_in, wait_until
from .._docker.client import Engine
from .._docker.connection import persist
from .._docker.payloads import network_body
from . import overlay_endpoint
from .examination import OLD, json_lines, lasting_body, start_lasting, stop_lasting

NAME = "cluster-compute-check-overlay-%s"
# Seconds until the engine lets the network go, for the test of all peers, and for a measurement beside its own.
REMOVE, TEST, SLACK = 30, 60, 20
# Seconds after which a container ends by itself if nothing removes it. The rounds of measurements are added to them.
LIFETIME, ROUNDS = 300, 3


def create_network(engine: Engine, mark: str, plan: Json) -> None:
    """Create the network on a manager. Networks that killed checks have left are removed first."""
    _remove_old_networks(engine)
    network = Network(
        name=NAME % mark,
        driver="overlay",
        subnet=plan["subnet"],
        gateway=plan["gateway"],
        ip_range=plan["ip_range"],
        mtu=int(plan["mtu"]),
        encrypted=bool(plan["encrypted"]),
        labels={LABEL_CHECK: str(int(time.time()))},
    )
    engine.create_network(network.name, network_body(network))


def remove_network(engine: Engine, mark: str) -> None:
    found = next((network for network in engine.networks(everyone=True) if network["Name"] == NAME % mark), None)
    if found is not None:
        persist(lambda: engine.remove_network(found["Id"], found["Name"]), deadline_in(REMOVE))


def start(engine: Engine, mark: str, plan: Json) -> None:
    """Start this agent's container in the network, and wait until it answers."""
    member = next(member for member in plan["members"] if member["name"] == engine.agent)
    failure = "the container in the check's overlay network does not answer"
    start_lasting(engine, NAME % mark, _body(mark, member, plan), failure)


def test(engine: Engine, mark: str) -> Json:
    """Let this agent's container test the network, and return what it has found, at the latest after some time."""
    engine.put_file(NAME % mark, overlay_endpoint.FOLDER, overlay_endpoint.GO, b"all\n")
    return _found(engine, mark, '["done"]', TEST)


def measure(engine: Engine, mark: str, peer: str, seconds: float) -> Json:
    engine.put_file(NAME % mark, overlay_endpoint.FOLDER, overlay_endpoint.LINK, f"{peer}\n".encode())
    return _found(engine, mark, '["mbits"', seconds + SLACK)


def stop(engine: Engine, mark: str) -> Json:
    """Remove the container, and return what it found, which is nothing if there is none."""
    return read_lines(stop_lasting(engine, NAME % mark))


def _found(engine: Engine, mark: str, last: str, seconds: float) -> Json:
    """What the container has found as soon as it has written a line that begins so, or after some seconds."""
    wait_until(lambda: "\n" + last in engine.logs(NAME % mark), deadline_in(seconds), 0.2, 1.0)
    return read_lines(engine.logs(NAME % mark))


def read_lines(text: str) -> Json:
    """What the container of an agent printed, as a dictionary of names, heard, latency, mbits and measured."""
    found: Dict[str, Any] = {"names": {}, "heard": [], "latency": {}, "mbits": {}, "measured": False}
    for words in json_lines(text):
        if words == ["done"]:
            found["measured"] = True
        elif words[:1] == ["heard"] and len(words) == 3:
            found["heard"].append([str(words[1]), str(words[2])])
        elif len(words) == 3 and words[0] in ("latency", "mbits") and isinstance(words[2], (int, float, type(None))):
            found[words[0]][str(words[1])] = words[2]
        elif words[:1] == ["name"] and len(words) == 3:
            found["names"][str(words[1])] = str(words[2])
    return found


def _body(mark: str, member: Json, plan: Json) -> Json:
    peers = [peer for peer in plan["members"] if peer is not member]
    options = {**member, "mtu": plan["mtu"], "seconds": plan["seconds"], "peers": peers}
    arguments = [json.dumps(options), str(LIFETIME + int(ROUNDS * plan["seconds"]))]
    body = lasting_body(inspect.getsource(overlay_endpoint), arguments, NAME % mark, mark)
    # An unanswered question for a name takes two seconds and not ten.
    body["Env"] = ["RES_OPTIONS=timeout:1 attempts:2"]
    endpoint = {"IPAMConfig": {"IPv4Address": member["address"]}, "Aliases": [member["host"]]}
    body["NetworkingConfig"] = {"EndpointsConfig": {NAME % mark: endpoint}}
    return body


def _remove_old_networks(engine: Engine) -> None:
    for network in engine.networks(everyone=True):
        made = (network.get("Labels") or {}).get(LABEL_CHECK, "")
        if network["Name"].startswith(NAME % "") and made.isdigit() and time.time() - int(made) > OLD:
            try:
                engine.remove_network(network["Id"], network["Name"])
            except ComputeError:
                continue  # another check removes it, or a lost agent still has a container in it
