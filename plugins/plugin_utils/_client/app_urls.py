# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file with the URLs of a session's apps. It holds tokens, so its mode is 0600, and nothing else repeats it."""

from __future__ import annotations

from contextlib import suppress
from typing import List, Mapping, Sequence

from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.session_json import SessionApp
from ...module_utils._shared.documents.topology import kept_apps
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.names import local_port
from .keys import Identity
from .session_dir import APPS, DOCUMENT, Artifacts

LOOPBACK = "127.0.0.1"
MAIN = "main1"


def urls_text(plan: Plan, identity: Identity, address: str, former: Sequence[str] = ()) -> str:
    """A line for each app that PID 1 runs: its name, its URL, and its token if the URL lacks it. ``former`` are the lines
    of the apps that were added after the launch.

    The URL of an app that is not public has the loopback address of this machine: either it is the agent, or the connection of
    ``tunnel`` gives it the same port.
    """
    ports = {port.name: port.host_port for port in plan.main.ports}
    lines = {}
    for _container, app in kept_apps(plan):
        host = address if app.public else LOOPBACK
        port = ports.get(app.name) or local_port(plan.session.id, app.name)
        lines[app.name] = line(app.name, app.access(host, port, identity.app_token(app.name)))
    return "".join([*lines.values(), *former])


def added(plan: Plan, artifacts: Artifacts) -> List[SessionApp]:
    """The entries of C(session.json) for the apps that main1 has got since its launch; none of a damaged document."""
    launched = [port.name for port in plan.main.ports]
    with suppress(ComputeError):
        path = f"{artifacts.folder}/{DOCUMENT}"
        entries = validation.session_document(artifacts.read(DOCUMENT) or b"", path).apps
        return [one for one in entries if one.name not in launched and one.hostname == MAIN]
    return []


def added_lines(plan: Plan, artifacts: Artifacts) -> List[str]:
    """The lines of these apps in the file."""
    names = {one.name for one in added(plan, artifacts)}
    return [one for one in _lines(artifacts) if one.partition(" ")[0] in names]


def line(name: str, url: str) -> str:
    return f"{name} {url}\n"


def change_apps(artifacts: Artifacts, added: Mapping[str, str], removed: Sequence[str]) -> None:
    """Add or replace URLs by app, and remove others."""
    kept = [one for one in _lines(artifacts) if one.partition(" ")[0] not in (*added, *removed)]
    lines = kept + [line(name, url) for name, url in added.items()]
    artifacts.write(APPS, "".join(lines).encode())


def _lines(artifacts: Artifacts) -> List[str]:
    """The lines of the file, which may be damaged."""
    return [one + "\n" for one in (artifacts.read(APPS) or b"").decode("utf-8", "replace").splitlines()]
