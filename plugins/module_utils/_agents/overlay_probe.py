# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The throw-away overlay network of a check on the engines: the network itself, and the container of each agent in it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import inspect
import json
import time
from typing import Any, Dict, List

from .._core.constants import LABEL_CHECK
from .._core.documents import Json
from .._core.errors import ComputeError, EngineError
from .._core.model import Network
from .._core.waiting import deadline_in, wait_until
from .._docker.client import Engine
from .._docker.payloads import network_body
from .._docker.removal import persist
from . import overlay_endpoint
from .examination import OLD, check_body, start_container

NAME = "cluster-compute-check-overlay-%s"
# Seconds until the container listens, until the engine lets the network go, and for the end of the measurements beside their budget.
START, REMOVE, SLACK = 45, 30, 20


def has_network(engine: Engine, mark: str) -> bool:
    return _network(engine, mark) is not None


def create_network(engine: Engine, mark: str, plan: Json) -> bool:
    """Create the network on a manager, unless it exists. Networks that killed checks have left are removed first."""
    _remove_old_networks(engine)
    if _network(engine, mark) is not None:
        return False
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
    return True


def remove_network(engine: Engine, mark: str) -> bool:
    """Remove the network from its manager; returns whether it existed."""
    found = _network(engine, mark)
    if found is None:
        return False
    persist(lambda: engine.remove_network(found["Id"], found["Name"]), deadline_in(REMOVE))
    return True


def start(engine: Engine, image: str, mark: str, own: str, plan: Json) -> bool:
    """Start this agent's container in the network, and wait until it answers; returns whether it did not exist before."""
    name = NAME % mark
    if engine.inspect(name) is not None:
        return False
    member = next(member for member in plan["members"] if member["name"] == own)
    identity = start_container(engine, name, _body(image, name, mark, member, plan))
    if not wait_until(lambda: "listening" in engine.logs(identity, tail=5), deadline_in(START)):
        output = " ".join(engine.logs(identity).split()) or "it wrote nothing"
        engine.remove(identity, name)
        message = "%s: the container in the check's overlay network does not answer: %s."
        raise EngineError(message % (engine.agent, output[-200:].rstrip(".")), engine.agent)
    return True


def measure(engine: Engine, mark: str) -> None:
    """Let this agent's container measure. It continues after this call."""
    folder, _slash, file = overlay_endpoint.GO.rpartition("/")
    engine.put_file(NAME % mark, folder, file, b"")


def exists(engine: Engine, mark: str) -> bool:
    return engine.inspect(NAME % mark) is not None


def stop(engine: Engine, mark: str, budget: float) -> Json:
    """Wait for the end of the measurements, remove the container, and return what it found."""
    name = NAME % mark
    container = engine.inspect(name)
    if container is None:
        return {}
    identity = container["Id"]
    try:
        if engine.has_path(identity, overlay_endpoint.GO):
            wait_until(lambda: '["done"]' in engine.logs(identity, tail=5), deadline_in(budget + SLACK), 0.2, 1.0)
        return read_lines(engine.logs(identity))
    finally:
        engine.remove(identity, name)


def read_lines(text: str) -> Json:
    """What the container of an agent printed, as a dictionary of names, heard, latency, mbits and measured."""
    found: Dict[str, Any] = {"names": {}, "heard": [], "latency": {}, "mbits": {}, "measured": False}
    for line in text.splitlines():
        words = _words(line)
        if words == ["done"]:
            found["measured"] = True
        elif words[:1] == ["heard"] and len(words) == 3:
            found["heard"].append([str(words[1]), str(words[2])])
        elif len(words) == 3 and words[0] in ("latency", "mbits") and isinstance(words[2], (int, float)):
            found[words[0]][str(words[1])] = words[2]
        elif words[:1] == ["name"] and len(words) == 3:
            found["names"][str(words[1])] = str(words[2])
    return found


def _words(line: str) -> List[Any]:
    try:
        words = json.loads(line)
    except ValueError:
        return []
    return words if isinstance(words, list) else []


def _body(image: str, name: str, mark: str, member: Json, plan: Json) -> Json:
    peers = [peer for peer in plan["members"] if peer is not member]
    options = {**member, "mtu": plan["mtu"], "seconds": plan["seconds"], "budget": plan["budget"], "peers": peers}
    command = ["python3", "-c", inspect.getsource(overlay_endpoint), json.dumps(options), str(_lifetime(plan))]
    body = check_body(image, command, name, mark)
    # An unanswered question for a name takes two seconds and not ten.
    body["Env"] = ["RES_OPTIONS=timeout:1 attempts:2"]
    body["HostConfig"]["AutoRemove"] = True
    endpoint = {"IPAMConfig": {"IPv4Address": member["address"]}, "Aliases": [member["host"]]}
    body["NetworkingConfig"] = {"EndpointsConfig": {name: endpoint}}
    return body


def _lifetime(plan: Json) -> int:
    """Seconds after which a container that nothing removes ends by itself, and is removed by its engine."""
    return int(plan["budget"]) + 240


def _network(engine: Engine, mark: str) -> Json | None:
    return next((network for network in engine.networks(everyone=True) if network["Name"] == NAME % mark), None)


def _remove_old_networks(engine: Engine) -> None:
    for network in engine.networks(everyone=True):
        made = (network.get("Labels") or {}).get(LABEL_CHECK, "")
        if network["Name"].startswith(NAME % "") and made.isdigit() and time.time() - int(made) > OLD:
            try:
                engine.remove_network(network["Id"], network["Name"])
            except ComputeError:
                continue  # another check removes it, or a lost agent still has a container in it
