# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of the store as session files, and as the variables of a launch that is like another session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import yaml

from ...module_utils._shared import states
from ...module_utils._shared.constants import MAIN
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.view import SessionView
from ...module_utils._shared.errors import ComputeError, InputError
from ...module_utils._shared.names import check_session_name
from ...module_utils._shared.planning.allocation import checked_folders
from ...module_utils._shared.planning.request import PRIVATE_FIELDS, Request
from ...module_utils._shared.planning.request_checks import check_whole_roles
from ...module_utils._shared.planning.request_validation import checked_request
from ...module_utils._shared.planning.secret_rules import HIDDEN, SECRETS
from .._client.request_cache import KeptRequests, NotRequestedError
from .._hosts.conductor import Play
from .._hosts.holder import login
from .._hosts.steps import SESSIONS_REQUEST
from .._variables.request_export import variables_of

LIKE = "session_like"
_TEMPLATE = re.compile(r"\{[{%#]")


class _Unsafe(str):
    """Text that Ansible must not read as a template."""


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    tag = "!unsafe" if isinstance(text, _Unsafe) else "tag:yaml.org,2002:str"
    return dumper.represent_scalar(tag, str(text), style="|" if "\n" in text else '"' if tag == "!unsafe" else None)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Unsafe, _text)


def stored_request(document: object, sender: str) -> Request:
    """The request. Raises ComputeError, which names the sender, if it has no value that a request has there."""
    request = checked_request(document, sender)
    if not _has_whole_roles(request):
        raise validation.refusal("request", sender, ("roles",), [role.name for role in request.roles])
    return request


def _has_whole_roles(request: Request) -> bool:
    """Return whether its roles are as the check of a request leaves them, with C(main) first."""
    names = [role.name for role in request.roles]
    try:
        check_whole_roles(request)
    except InputError:
        return False
    return not names or (names[0] == MAIN and request.roles[0].size == 1 and len(set(names)) == len(names))


@dataclass(frozen=True)
class RequestedSession:
    """A session of the store that a pass may launch, with the data folders that its agents must have. ``relocates``: it moves."""

    id: str
    name: str
    waits: bool
    request: Request
    folders: Sequence[str]
    relocates: bool = False


def checked_sessions(sessions: Sequence[SessionView], head: str) -> Tuple[List[RequestedSession], List[str]]:
    """Sessions of the store with their checked requests, for a pass, and why others are left out."""
    found, refused = [], []
    for session in sessions:
        try:
            request = stored_request(session.request, head)
        except ComputeError as error:
            refused.append(error.message)
        else:
            found.append(RequestedSession(session.id, session.name, session.waits, request, checked_folders(request)))
    return found, refused


@dataclass(frozen=True)
class StoredSession:
    """A session of the store, whose request is checked. ``hidden`` are the variables that this login may not read."""

    id: str
    state: str
    on_failure: str
    request: Request
    hidden: Sequence[str]


def stored(play: Play, variable: str, name: str, owner: str) -> StoredSession:
    """The newest session of a name. Raises InputError, which names the variable, if the store has no request of this session."""
    asked = SESSIONS_REQUEST(name=check_session_name(variable, name), owner=owner or login(), viewer=login())
    with play.phase("check"):
        found = play.on_head(asked)
    if found["request"] is None:
        rule = "must be a session of %s that runs or that the head still keeps, and that this head has launched"
        raise InputError(variable, name, rule % (owner or login()))
    hidden = [one for one in PRIVATE_FIELDS if one not in found["request"]]
    request = stored_request(found["request"], play.head)
    return StoredSession(str(found["id"]), str(found["state"]), str(found["on_failure"]), request, hidden)


def readable(play: Play, variable: str, name: str) -> StoredSession:
    """As ``stored``, of a session that this login may read whole. Raises InputError for another."""
    found = stored(play, variable, name, play.owner)
    if found.hidden:
        rule = f"must be a session of {login()}: only its owner can read {', '.join(found.hidden)}"
        raise InputError(variable, name, rule)
    return found


def running_session(play: Play) -> StoredSession:
    """The running session of the variable C(session_name), which this login may read whole. Raises InputError for another."""
    name = str(play.value("session_name"))
    found = readable(play, "session_name", name)
    if found.state != states.RUNNING:
        raise InputError("session_name", name, f"must be a running session, and is {found.state}")
    return found


def like(play: Play) -> Dict[str, Any]:
    """The variables of the session that the new one is to be like, or none. Secrets are not stored: the command must give them."""
    name = play.value(LIKE)
    if not name:
        return {}
    found = readable(play, LIKE, str(name))
    request = found.request
    try:
        KeptRequests(play.artifacts).check_any(found.id, request, play.head)
    except NotRequestedError:
        rule = (
            "must be a session that this controller has requested, as other users can write the session store: write its session file "
            "with show --file, read it, and launch that"
        )
        raise InputError(LIKE, str(name), rule) from None
    variables = variables_of(request)
    if request.secrets and not play.value(SECRETS):
        names = ", ".join(secret.name for secret in request.secrets)
        raise InputError(
            SECRETS, HIDDEN, f"must be given: session {name} has secrets, whose values are not stored ({names})"
        )
    variables.pop(SECRETS, None)
    return variables


def session_file(play: Play, name: str, owner: str) -> str:
    """The text of a session file that asks for the same session, with comments about what it lacks."""
    found = stored(play, "session_name", name, owner)
    request = found.request
    variables = variables_of(request)
    if request.owner == login():
        del variables["session_owner"]
    text = yaml.dump(_marked(variables), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    lacks = [
        f"# session_secrets: {secret.name} needs a value or a file, which are not stored" for secret in request.secrets
    ]
    lacks += [f"# session_{one}: only {request.owner} can read it" for one in found.hidden]
    return "\n".join(["---", f"# The request of session {request.name} of {request.owner}.", *lacks, text])


def _marked(value: Any) -> Any:
    """The value, in which each text that looks like a template of Ansible is marked as none."""
    if isinstance(value, dict):
        return {_marked(name): _marked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_marked(part) for part in value]
    return _Unsafe(value) if isinstance(value, str) and _TEMPLATE.search(value) else value
