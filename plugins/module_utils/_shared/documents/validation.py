# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validate once what arrives at a controller: results, reports, plans, and ``session.json``.

An agent, the head or another user of the session store may have written them. A value becomes a name, an address or a port here, by
its rule, or the document is refused with the name of its sender. Text for people loses its control characters. Actions read such
documents nowhere else. ``plugins/plugin_utils/_session/agreement.py`` then compares a plan with its request.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import fields, replace
from typing import Any, Callable, Dict, Mapping, Tuple, Type, TypeVar, get_type_hints

from ..codec import DECLARATION, Json, decoded
from ..errors import ComputeError, escape_control
from ..value_rules import check_image, check_public_key
from .decision import Decision, Recorded
from .declaration import BatchSettings, ContainerSettings
from .image import AgentImage
from .label_rules import invalid_labels
from .plan import App, Container, Mount, Network, Plan, Port, Role, Secret, Session, User
from .report import AgentReport
from .schema import (
    AGENT,
    AMOUNT,
    DRIVER,
    HOME,
    HOSTNAME,
    ID,
    INTERFACE,
    LOGIN,
    MOST,
    PORT,
    RESOURCES,
    ROLE,
    UUID,
    VARIABLE,
    WORD,
    Required,
    Rule,
    a_flag,
    a_host_address,
    a_line,
    a_number,
    a_subnet,
    a_text,
    an_address,
    an_ipv4_subnet,
    by_rule,
    fault,
    in_order,
    matching,
    or_none,
    rules_of,
    texts,
    whole,
)
from .session_json import OWNER, SESSION_DOCUMENT, SESSION_NAME, SessionDocument
from .topology import members

_Document = TypeVar("_Document")
_Kind = TypeVar("_Kind")
# Documents that must arrive as they are: a plan is compared with its request, a request with the one that was kept.
_EXACT = ("plan", "request")
# What ``visible`` escapes, as JSON writes it. Other text is only found too often.
_SUSPECT = re.compile(r"\x7f|\\(?:[bfr]|u(?:00[01789]|061c|20[0-6]|d[89a-f]))")


# Fields that any result may have in addition to the fields of its step. A malformed one would fail the command for all agents.
_FRAME = {
    "warnings": lambda value: isinstance(value, (list, tuple)),
    "failure": {"code": a_text, "message": a_text, "where": a_text},
    "duration": a_number,
    "engine_calls": [in_order(a_number, a_number, a_text, a_text)],
}


def _is_odd(name: str, value: object) -> bool:
    rule = _FRAME.get("duration" if name.endswith("duration") else name)
    return rule is not None and fault(rule, value) is not None


def result(document: Json) -> Json:
    """The result of a module: text for people without control characters. Plans and requests in it stay as they are."""
    if any(_is_odd(name, value) for name, value in document.items()):
        document = {name: value for name, value in document.items() if not _is_odd(name, value)}
    try:
        if not _SUSPECT.search(json.dumps(document)):
            return document
    except (TypeError, ValueError, RecursionError):  # Ansible's own objects, such as warnings
        pass
    try:
        return {name: value if name in _EXACT else _shown(value) for name, value in document.items()}
    except RecursionError:
        raise ComputeError("The result of a module is too deep to be read.") from None


def arrived(kind: Type[_Kind], document: object, word: str, sender: str) -> _Kind:
    """The document as an object of a kind. Raises ComputeError if a part of it breaks the rule of its field."""
    _checked(rules_of(kind), document, word, sender)
    try:
        return decoded(kind, document)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        raise refusal(word, sender, (), "a document without what it needs") from None


def report(document: object, agent: str) -> AgentReport:
    """The report of an agent. Raises ComputeError if it is not a report of this agent."""
    made = arrived(AgentReport, document, "report", agent)
    if made.name != agent:
        raise refusal("report", agent, ("name",), made.name)
    for number, container in enumerate(made.containers):
        # An agent ignores a container whose labels cannot be read.
        if invalid_labels(container.labels):
            raise refusal("report", agent, ("containers", number, "labels"), dict(container.labels))
    return made


def store(document: Json, agent: str) -> Json:
    """Return what an agent has of a head. Raises ComputeError if the answer does not say so."""
    return _checked(_STORE, dict(document.get("store") or {"sessions": 0, "policy": False}), "answer", agent)


def image(document: Json, agent: str) -> AgentImage:
    """The image in an agent's answer. Raises ComputeError if there is none."""
    return arrived(AgentImage, document.get("image"), "answer", agent)


def answer(kind: Type[_Kind]) -> Callable[[Json, str], _Kind]:
    """Return a function that reads the answer of a host as a document of this kind, and raises ComputeError for anything else."""
    return lambda document, host: arrived(kind, document, "answer", host)


def plan(document: Any, sender: str) -> Plan:
    """The plan of a session. Raises ComputeError if it has no value that a plan has there."""
    _checked(_PLAN, document, "plan", sender)
    try:
        made = Plan.from_json(document)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise refusal("plan", sender, (), "a document without what a plan has") from None
    places = [(one.hostname, one.role, one.index, one.rank) for one in made.containers]
    wanted = [(one.hostname, one.role, one.index, one.rank) for one in members(made.session.size, made.session.roles)]
    if places != wanted or len(places) != made.session.size:
        strange = next((place for place in places if place not in wanted), len(places))
        raise refusal("plan", sender, ("containers",), strange)
    subnet = ipaddress.ip_network(made.network.subnet)
    for container in made.containers:
        if ipaddress.ip_address(container.address) not in subnet:
            raise refusal("plan", sender, ("containers", container.hostname, "address"), container.address)
    return made


def decision(document: Json, sender: str) -> Decision:
    """Return what the head has decided about a session. Raises ComputeError if it is no decision."""
    _checked(_DECISION, document, "decision", sender)
    try:
        made = Decision.from_json({**document, "plan": None})
    except (TypeError, ValueError, RecursionError):
        raise refusal("decision", sender, (), "a document without what a decision has") from None
    return replace(made, plan=plan(document["plan"], sender)) if document.get("plan") else made


def recorded(document: Json, sender: str) -> Recorded:
    """Return what the head has recorded. Raises ComputeError if it is no session."""
    if "session" not in document:
        raise refusal("answer", sender, ("session",), None)
    return arrived(Recorded, {**document, "session": document["session"] or None}, "answer", sender)


def request(document: object, sender: str) -> Json:
    """The request of a session of the store. Raises ComputeError if it has no value that a request has there."""
    _checked(_REQUEST, document, "request", sender)
    if not isinstance(document, dict):
        raise refusal("request", sender, (), document)
    return document


def session_document(content: bytes | str, path: str) -> SessionDocument:
    """``session.json``, which a launch wrote. Raises ComputeError if it is damaged or was changed."""
    try:
        document = _checked(SESSION_DOCUMENT, json.loads(content), "document", path)
        return SessionDocument.from_json(_shown(document))
    except (ValueError, TypeError, RecursionError) as error:
        raise ComputeError(f"{path} is damaged: run the session's launch again, which writes it.") from error


def session_id(value: object, sender: str) -> str:
    if not UUID(value):
        raise refusal("answer", sender, ("session", "id"), value)
    return str(value)


def _checked(rules: Rule, document: _Document, kind: str, sender: str) -> _Document:
    """The document. Raises ComputeError if a part of it breaks its rule."""
    found = fault(rules, document)
    if found is not None:
        raise refusal(kind, sender, *found)
    return document


def refusal(kind: str, sender: str, place: Tuple[Any, ...], value: object) -> ComputeError:
    """The error for a document of a sender that has a value at a place where its kind has none like it."""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    where = f" has {shown} in {'.'.join(map(str, place))}" if place else f" is {shown}"
    message = "The %s of %s is refused: it%s. Nothing is done with it; find out who has changed it there."
    return ComputeError(message % (kind, sender, where), sender)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        # A text without control characters keeps its type, which may say where it comes from.
        text = escape_control(value)
        return value if text == value else text
    if isinstance(value, Mapping):
        return {_shown(name): part if name in _EXACT else _shown(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(part) for part in value]
    return value


_BY_TYPE = {bool: a_flag, float: a_number, Mapping[str, str]: texts}


def _rules(kind: type, **own: Rule) -> Dict[str, Rule]:
    """The rule of each field of a dataclass: the given rule, else the rule of its variable, else the rule of its type."""
    declared = {one.name: one.metadata[DECLARATION] for one in fields(kind) if DECLARATION in one.metadata}
    checks = {name: by_rule(variable["check"], name) for name, variable in declared.items()}
    of_types = {name: _BY_TYPE[hint] for name, hint in get_type_hints(kind).items() if hint in _BY_TYPE}
    return {**of_types, **checks, **own}


_DECISION = rules_of(Decision)
_IMAGE, _SIZE, _MILLICPUS = by_rule(check_image, "image"), whole(MOST, 1), whole(1 << 40, 10)
_USER = _rules(User, name=LOGIN, uid=ID, gid=ID, home=HOME)
_APPS = [_rules(App, name=WORD, port=PORT, preferred_port=PORT, command=a_text, ready=a_line, path=a_line)]
_ROLE = _rules(
    Role,
    name=ROLE,
    size=_SIZE,
    image=_IMAGE,
    millicpus=_MILLICPUS,
    memory=AMOUNT,
    shm=AMOUNT,
    group=WORD,
    per_agent=whole(MOST),
    command=a_text,
    ready=a_text,
    after=[ROLE],
    apps=_APPS,
)
_MOUNT = _rules(Mount, source=a_line, target=a_line, type=matching("bind|volume|nfs"), mode=matching("rw|ro"))
# What a request and its plan have in common.
_SHARED = {
    **_rules(BatchSettings),
    **_rules(ContainerSettings, authorized_keys=[by_rule(check_public_key, "authorized_keys")]),
    "name": SESSION_NAME,
    "owner": OWNER,
    "group": WORD,
    "mode": matching("single-node|multi-node"),
    "size": _SIZE,
    "image": _IMAGE,
    "user": _USER,
    "mounts": [_MOUNT],
    "apps": _APPS,
    "secrets": [_rules(Secret, name=WORD, environment=VARIABLE)],
    "roles": [_ROLE],
}
_REQUEST = {
    **_SHARED,
    "millicpus": _MILLICPUS,
    "agents": [AGENT],
    "environment": texts,
}
_PLAN = {
    "session": _rules(Session, **_SHARED, id=UUID, launch=UUID, request=WORD, permitted_folders=[a_line]),
    "network": _rules(
        Network,
        name=WORD,
        driver=DRIVER,
        subnet=a_subnet,
        gateway=an_address,
        ip_range=a_subnet,
        mtu=or_none(whole(65535, 68)),
        fabric=lambda value: value == "" or an_ipv4_subnet(value),
        ssh_port=PORT,
        master_port=PORT,
    ),
    "containers": [
        _rules(
            Container,
            id=UUID,
            name=WORD,
            hostname=HOSTNAME,
            role=ROLE,
            index=_SIZE,
            rank=whole(MOST),
            local_rank=whole(MOST),
            agent=AGENT,
            address=a_host_address,
            resources=RESOURCES,
            interface=INTERFACE,
            ports=[_rules(Port, name=WORD, container_port=PORT, host_ip=an_address, host_port=PORT)],
        )
    ],
    "peers": lambda _value: False,
    "shared": {"environment": texts, "labels": texts},
}
# What an agent has of a head.
_STORE = Required(sessions=AMOUNT, policy=a_flag)
