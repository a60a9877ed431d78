# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What arrives at a controller, checked once: results, reports, plans, and ``session.json``.

An agent, the head or another user of the session store may have written them. A value becomes a name, an address or a port here, by
its rule, or the document is refused with the name of its sender. Text for people loses its control characters. Actions read such
documents nowhere else. ``_planning/agreement.py`` then compares a plan with its request.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import ipaddress
import json
import math
import re
import uuid
from dataclasses import fields
from typing import Any, Callable, Dict, Mapping, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.batch_settings import BatchSettings
from ansible_collections.cluster.compute.plugins.module_utils._core.container_settings import ContainerSettings
from ansible_collections.cluster.compute.plugins.module_utils._core.declaration import DECLARATION
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.names import check_owner, check_session_name
from ansible_collections.cluster.compute.plugins.module_utils._core.public_keys import check_public_key
from ansible_collections.cluster.compute.plugins.module_utils._core.shared_texts import outline_of
from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible
from ansible_collections.cluster.compute.plugins.module_utils._core.topology import members
from ansible_collections.cluster.compute.plugins.module_utils._core.value_rules import check_image

# A rule of a value, the rules of a mapping's values, or a list with the rule of its elements.
Rule = Any
MOST = 1000
# Containers that an engine may have, and entries of any other list of a report.
_MOST_ENTRIES = 100_000
_MOST_TEXT = 1 << 20
_MOST_AMOUNT = 1 << 60
# Documents that must arrive as they are: a plan is compared with its request, a request with the one that was kept.
_EXACT = ("plan", "request")
# What ``visible`` escapes, as JSON writes it. Other text is only found too often.
_SUSPECT = re.compile(r"\\(?:[bfr]|u(?:00[01789]|061c|20[0-6]|d[89a-f]))")


def result(document: Json) -> Json:
    """The result of a module: text for people without control characters. Plans and requests in it stay as they are."""
    try:
        if not _SUSPECT.search(json.dumps(document)):
            return document
    except (TypeError, ValueError):  # Ansible's own objects, such as warnings
        pass
    return {name: value if name in _EXACT else _shown(value) for name, value in document.items()}


def report(document: object, agent: str) -> Json:
    """The report of an agent. Raises ComputeError if it is not a report of this agent."""
    _check(_REPORT, document, "report", agent)
    if not isinstance(document, dict) or document.get("name") != agent:
        raise _refusal("report", agent, ("name",), document.get("name") if isinstance(document, Mapping) else None)
    return document


def plan(document: object, sender: str) -> Plan:
    """The plan of a session. Raises ComputeError if it has no value that a plan has there."""
    _check(_PLAN, document, "plan", sender)
    return _read_plan(document, sender)


def outline(document: object, sender: str) -> Plan:
    """The plan without the environment and the labels of its containers."""
    _check(_PLAN, document, "plan", sender)
    return _read_plan(outline_of(document) if isinstance(document, Mapping) else document, sender)


def request(document: object, sender: str) -> Json:
    """The request of a session of the store. Raises ComputeError if it has no value that a request has there."""
    _check(_REQUEST, document, "request", sender)
    if not isinstance(document, dict):
        raise _refusal("request", sender, (), document)
    return document


def session_document(content: bytes | str, path: str) -> Json:
    """``session.json``, which a launch wrote. Raises ComputeError if it is damaged or was changed."""
    try:
        document: Json = json.loads(content)
        _check(_SESSION_DOCUMENT, document, "document", path)
        _check_names(document)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ComputeError("%s is damaged: run the session's launch again, which writes it." % path) from error
    shown: Json = _shown(document)
    return shown


def session_id(value: object, sender: str) -> str:
    """The ID of a session, which is also the name of a file."""
    if not _UUID(value):
        raise _refusal("answer", sender, ("session", "id"), value)
    return str(value)


def _check_names(document: Json) -> None:
    """Raise LookupError for a session or a container without a name."""
    for name in ("id", "name", "owner", "user"):
        document["session"][name]
    for container in document["containers"]:
        container["hostname"]


def _read_plan(document: Any, sender: str) -> Plan:
    try:
        made = Plan.from_json(document)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise _refusal("plan", sender, (), "a document without what a plan has") from None
    places = [(one.hostname, one.role, one.index, one.rank) for one in made.containers]
    wanted = [(one.hostname, one.role, one.index, one.rank) for one in members(made.session.size)]
    if places != wanted:
        strange = next((place for place in places if place not in wanted), len(places))
        raise _refusal("plan", sender, ("containers",), strange)
    subnet = ipaddress.ip_network(made.network.subnet)
    for container in made.containers:
        if ipaddress.ip_address(container.address) not in subnet:
            raise _refusal("plan", sender, ("containers", container.hostname, "address"), container.address)
    return made


def _check(rules: Rule, document: object, kind: str, sender: str) -> None:
    found = _fault(rules, document)
    if found is not None:
        raise _refusal(kind, sender, *found)


def _refusal(kind: str, sender: str, place: Tuple[Any, ...], value: object) -> ComputeError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    where = " has %s in %s" % (shown, ".".join(map(str, place))) if place else " is %s" % shown
    message = "The %s of %s is refused: it%s. Nothing is done with it; find out who has changed it there."
    return ComputeError(message % (kind, sender, where), sender)


def _fault(rule: Rule, value: object) -> Tuple[Tuple[Any, ...], object] | None:
    """The place and the value of the first part that breaks its rule; None if there is none. An absent part breaks none."""
    if isinstance(rule, dict):
        if not isinstance(value, Mapping):
            return (), value
        parts = ((name, part, value[name]) for name, part in rule.items() if name in value)
    elif isinstance(rule, list):
        if not isinstance(value, (list, tuple)) or len(value) > _MOST_ENTRIES:
            return (), value
        parts = ((number, rule[0], entry) for number, entry in enumerate(value))
    else:
        return None if rule(value) else ((), value)
    for name, part, inner in parts:
        found = _fault(part, inner)
        if found is not None:
            return (name, *found[0]), found[1]
    return None


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        # A text without control characters keeps its type, which may say where it comes from.
        text = visible(value)
        return value if text == value else text
    if isinstance(value, Mapping):
        return {_shown(name): part if name in _EXACT else _shown(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(part) for part in value]
    return value


# The rules of values


def _text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def _line(value: object) -> bool:
    """A text on one line that no terminal and no file of a line for each value takes for anything else."""
    return isinstance(value, str) and len(value) <= 4096 and "\n" not in value and visible(value) == value


def _matching(pattern: str) -> Callable[[object], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _by(check: Callable[..., Any], *given: str) -> Callable[[object], bool]:
    """A rule of a variable: it holds for its own normal form."""

    def holds(value: object) -> bool:
        try:
            return bool(check(*given, value) == value)
        except ComputeError:
            return False

    return holds


def _whole(most: int, least: int = 0) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _address(value: object) -> bool:
    try:
        return isinstance(value, str) and "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _subnet(value: object) -> bool:
    try:
        return isinstance(value, str) and "%" not in value and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


def _any_uuid(value: object) -> bool:
    """A UUID in any of its forms, or nothing."""
    try:
        return value == "" or (isinstance(value, str) and bool(uuid.UUID(value)))
    except ValueError:
        return False


def _texts(value: object) -> bool:
    if not isinstance(value, Mapping) or len(value) > _MOST_ENTRIES:
        return False
    return all(isinstance(name, str) and isinstance(text, str) for name, text in value.items())


_UUID = _matching(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD = _matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_VARIABLE = _matching(r"[A-Za-z_][A-Za-z0-9_]{0,255}|")
_HOSTNAME = _matching(r"main1|sub[1-9][0-9]{0,3}")
# The name of a host in an inventory. It becomes a word of messages and a key of the inventory, and never a path.
_AGENT = _matching(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,254}")
_LOGIN = _matching(r"[a-z_][a-z0-9_-]{0,31}")
_ID = _whole(2**31 - 1)
_AMOUNT, _PORT = _whole(_MOST_AMOUNT), _whole(65535)
_CPUS = _matching(r"(?:[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?){0,4095})?")
_GPUS = [{"id": _line, "shares": _number}]
_RESOURCES = {"millicpus": _AMOUNT, "memory": _AMOUNT, "shm": _AMOUNT, "gpus": _GPUS, "cpuset": _CPUS}


def _declared() -> Dict[str, Rule]:
    """The rules of the variables that a request and its plan have in common."""
    known = [*fields(BatchSettings), *fields(ContainerSettings)]
    return {one.name: _by(one.metadata[DECLARATION]["check"], one.name) for one in known}


_SESSION = {
    **_declared(),
    "id": _UUID,
    "launch": _UUID,
    "name": _by(check_session_name),
    "owner": _by(check_owner),
    "group": _WORD,
    "mode": _matching("single-node|multi-node"),
    "size": _whole(MOST, 1),
    "image": _by(check_image, "image"),
    "request": _WORD,
    "began": _number,
    "user": {"name": _LOGIN, "uid": _ID, "gid": _ID, "home": _matching(r"/[A-Za-z0-9._/-]{0,255}")},
    "mounts": [
        {
            "source": _line,
            "target": _line,
            "type": _matching("bind|volume|nfs"),
            "mode": _matching("rw|ro"),
            "options": _texts,
            "local": _flag,
        }
    ],
    "apps": [
        {
            "name": _WORD,
            "port": _PORT,
            "preferred_port": _PORT,
            "public": _flag,
            "command": _text,
            "ready": _line,
            "environment": _texts,
            "path": _line,
        }
    ],
    "secrets": [{"name": _WORD, "environment": _VARIABLE}],
    "authorized_keys": [_by(check_public_key, "authorized_keys")],
    "own_volumes": _flag,
}
_OF_PLAN = ("id", "launch", "request", "began", "own_volumes")
_REQUEST = {
    **{name: rule for name, rule in _SESSION.items() if name not in _OF_PLAN},
    "millicpus": _AMOUNT,
    "memory": _AMOUNT,
    "shm": _AMOUNT,
    "gpus": _number,
    "agents": [_AGENT],
    "environment": _texts,
    "network_pool": [_subnet],
    "port_range": _matching("[0-9]{1,5}-[0-9]{1,5}"),
    "pull": _matching("missing|always|never"),
}
_PLAN = {
    "session": _SESSION,
    "network": {
        "name": _WORD,
        "driver": _matching("bridge|overlay"),
        "subnet": _subnet,
        "gateway": _address,
        "ip_range": _subnet,
        "mtu": lambda value: value is None or _whole(65535, 68)(value),
        "encrypted": _flag,
        "labels": _texts,
    },
    "containers": [
        {
            "id": _UUID,
            "name": _WORD,
            "hostname": _HOSTNAME,
            "role": _matching("main|sub"),
            "index": _whole(MOST, 1),
            "rank": _whole(MOST),
            "local_rank": _whole(MOST),
            "agent": _AGENT,
            "address": _address,
            "resources": _RESOURCES,
            "ports": [{"name": _WORD, "container_port": _PORT, "host_ip": _address, "host_port": _PORT}],
            "environment": _texts,
            "labels": _texts,
        }
    ],
    "peers": lambda _value: False,
    "shared": {"environment": _texts, "labels": _texts},
}
_SWARM = {"cluster_id": _line, "node_id": _line, "state": _line, "managers": [_line], "data_path_port": _PORT}
_REPORT = {
    "name": _AGENT,
    "reachable": _flag,
    "schedulable": _flag,
    "may_return": _flag,
    "reason": _text,
    "group": _line,
    "architecture": _line,
    "publish": _address,
    "address": _line,
    "capacity": {"millicpus": _AMOUNT, "memory": _AMOUNT, "gpus": _GPUS, "cpu_ids": [_whole(65535)]},
    "engine": {"swarm": _SWARM},
    "paths": lambda value: isinstance(value, Mapping) and all(map(_line, value)) and all(map(_flag, value.values())),
    "image": {"reference": _text, "id": _line, "architecture": _line, "present": _flag},
    "mtu": _whole(65535),
    "routes": [_subnet],
    "needed_addresses": [_subnet],
    "overlay_guard": {"state": _line, "port": _PORT},
    "networks": [{"subnets": [_subnet], "session": _line}],
    "ports": [_PORT],
    "names": [_line],
    # Their labels have been checked on the agent, and every user of its engine can write some of them.
    "containers": [
        {
            "id": _any_uuid,
            "session": _any_uuid,
            "hostname": _matching(r"[A-Za-z0-9._-]{0,132}"),
            "state": _line,
            "rank": _whole(9999),
            "resources": {"millicpus": _AMOUNT, "memory": _AMOUNT, "shm": _AMOUNT},
        }
    ],
}
_SESSION_DOCUMENT = {
    "session": {
        "id": _UUID,
        "name": _by(check_session_name),
        "owner": _by(check_owner),
        "user": {"name": _LOGIN, "uid": _ID, "gid": _ID},
    },
    "containers": [
        {
            "id": _UUID,
            "hostname": _HOSTNAME,
            "agent": _AGENT,
            "rank": _whole(MOST),
            "local_rank": _whole(MOST),
            "address": _address,
            "gpus": [_line],
        }
    ],
    "apps": [{"name": _WORD, "address": _line, "port": _PORT, "tunnel": _line, "relay": _flag}],
}
