# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start, restart and end apps of a running session, and keep their URLs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Mapping, Sequence, Tuple

from ...module_utils._agent.ssh.app_files import running
from ...module_utils._shared.codec import ModuleResult, sealed, subset
from ...module_utils._shared.documents.plan import App, Plan, User
from ...module_utils._shared.documents.report import AppState, Relay
from ...module_utils._shared.documents.session_json import SessionApp, SessionContainer, SessionDocument, tunnel
from ...module_utils._shared.documents.step_documents import ChangedApps
from ...module_utils._shared.documents.topology import kept_apps
from ...module_utils._shared.errors import ComputeError, InputError, StateError
from ...module_utils._shared.names import local_port
from .._client import app_urls
from .._client.keys import Identity
from .._client.session_dir import DOCUMENT, Artifacts
from .._client.shell import Shell
from .._hosts.call import Call
from .._hosts.conductor import Play
from .._hosts.steps import APPS_CHANGE, STORE_CHECK_RELAYS
from .._variables.apps_change import AppsChange

_MAIN = app_urls.MAIN


def restart_apps(play: Play, plan: Plan, names: Sequence[str], seconds: int) -> None:
    """Start apps again that PID 1 does not start again by itself."""
    change = AppsChange(plan.session.id, seconds, restart=names)
    change_apps(play, plan.session.name, change, {one.hostname: one.agent for one in plan.containers})


def change_apps(play: Play, name: str, change: AppsChange, agents: Mapping[str, str] | None = None) -> ModuleResult:
    """Change the apps of a session, and write their URLs; the result has lines for people.

    ``agents`` has the agent of each container, if another controller may have moved them since C(session.json) was written.
    """
    artifacts, document = Artifacts(play.artifacts, name), _document(play, name, agents or {})
    identity = artifacts.known_identity(document.session.id, name)
    parts = _parts(document, change)
    apps = running(change.apps)
    _check_policy(play, document.session.owner, apps, change)
    own = {
        "tokens": sealed({app.name: identity.app_token(app.name) for app in apps}),
        "user": User.from_json(subset(document.session.user, "uid", "gid")),
    }
    with play.phase("apps"):
        result = _on_each(play, name, parts, own)
    if not play.check:
        # Another command may have changed other apps meanwhile, or launched a session of this name.
        known, document = document.session.id, _document(play, name, agents or {})
        if document.session.id != known:
            raise StateError(f"Session {name} was replaced by another session of this name; run the command again.")
        removed = list(change.remove)
        relays = {relay.name: relay for relay in result.relays}
        # A port that was published at the launch stays published.
        kept = tuple(one for one in document.apps if one.name not in removed or (one.port and not one.relay))
        address = play.address_of(document.containers[0].agent)
        document = _keep(artifacts, replace(document, apps=kept), apps, relays, address)
        _keep_urls(artifacts, document, apps, removed, identity)
    return {**result.to_json(), "lines": _lines(result.apps, document)}


def _document(play: Play, name: str, agents: Mapping[str, str]) -> SessionDocument:
    """C(session.json), with the agents on which the containers are now."""
    document = Shell(play.artifacts, name).document
    moved = (replace(one, agent=agents.get(one.hostname, one.agent)) for one in document.containers)
    return replace(document, containers=tuple(moved))


def added_apps(play: Play, plan: Plan, listed: Plan) -> List[SessionApp]:
    """The entries of C(session.json) for the apps that main1 has got since its launch. Removes the URLs of apps that are gone.

    An app of main1 is gone if main1 no longer lists it. An app of a role is gone if C(listed) does not have it.
    A restarted main1 still has its list of apps. A new main1 has the list of the launch. A relay ends with main1, and another
    program may then get its port.
    """
    artifacts = Artifacts(play.artifacts, plan.session.name)
    added = app_urls.added(plan, artifacts)
    names = [one.name for one in added] + [app.name for app in running(plan.session.apps)]
    asked = APPS_CHANGE(session=plan.session.id, user=plan.session.user, tokens=sealed({}))
    try:
        found = play.on(plan.main.agent, asked) if names else ChangedApps()
        there = {app.name for app in found.apps}
    except ComputeError:  # no reason to undo a session that is verified
        found, there = ChangedApps(), set(names)
    relays = [(relay.name, relay.port) for relay in found.relays]
    kept = [one for one in added if one.name in there and (not one.relay or (one.name, one.port) in relays)]
    staying = {one.name for one in kept} | {app.name for one, app in kept_apps(listed) if one.rank or app.name in there}
    gone = [name for name in (*names, *(app.name for _one, app in kept_apps(plan))) if name not in staying]
    if gone:
        app_urls.change_apps(artifacts, {}, gone)
    return kept


def _parts(document: SessionDocument, change: AppsChange) -> List[Tuple[SessionContainer, AppsChange]]:
    """The containers whose apps change, or all that have apps, each with its part of the change. An unknown app is main1's."""
    homes = {app.name: app.hostname for app in document.apps}

    def part(hostname: str) -> AppsChange:
        def own(names: Sequence[str]) -> List[str]:
            return [name for name in names if homes.get(name, _MAIN) == hostname]

        apps = [app for app in change.apps if homes.get(app.name, _MAIN) == hostname]
        publish, restart, remove = map(own, (change.publish, change.restart, change.remove))
        return replace(change, apps=apps, publish=publish, restart=restart, remove=remove)

    for app in change.apps:
        if homes.get(app.name, _MAIN) != _MAIN:
            raise InputError("session_apps", app.name, f"must be another name: {homes[app.name]} has this app")
    parts = [(container, part(container.hostname)) for container in document.containers]
    with_apps = [pair for pair in parts if pair[0].hostname in (_MAIN, *homes.values())]
    return [pair for pair in parts if pair[1].names_apps] or with_apps


def _on_each(
    play: Play, session: str, parts: List[Tuple[SessionContainer, AppsChange]], common: Mapping[str, Any]
) -> ChangedApps:
    """Change the apps of these containers, each by its part of the change; the results as one."""
    for container, _part in parts:
        if container.agent not in play.names:
            rule = f"{container.hostname} is on {container.agent}, which this inventory does not have"
            raise InputError("session_name", session, rule)
    results = [play.on(container.agent, _step(container, part, common)) for container, part in parts]
    # Containers on one agent have the same relays there.
    relays = {relay.name: relay for one in results for relay in one.relays}
    apps = tuple(app for one in results for app in one.apps)
    return ChangedApps(any(one.changed for one in results), apps, tuple(relays.values()))


def _step(container: SessionContainer, part: AppsChange, common: Mapping[str, Any]) -> Call[ChangedApps]:
    return APPS_CHANGE(
        session=part.session,
        apps=part.apps,
        publish=list(part.publish),
        restart=list(part.restart),
        remove=list(part.remove),
        ports=part.ports,
        deadline=part.timeout,
        hostname=container.hostname,
        **common,
    )


def _check_policy(play: Play, owner: str, apps: List[App], change: AppsChange) -> None:
    """Refuse relays that the policy of the site, which the head reads, does not permit this owner."""
    relays = [app for app in apps if app.name in change.publish]
    if relays:
        play.on_head(STORE_CHECK_RELAYS(relays=relays, owner=owner, port_range=change.ports))


def _keep(
    artifacts: Artifacts, document: SessionDocument, apps: List[App], relays: Mapping[str, Relay], agent: str
) -> SessionDocument:
    """Write ``session.json``, with an entry for each app. ``agent`` is where the controller reaches the relays."""
    known = {entry.name: entry for entry in document.apps}
    for app in apps:
        relay = relays.get(app.name)
        if relay:
            where = app_urls.LOOPBACK if relay.host_ip.startswith("127.") else agent
            way = tunnel(artifacts.folder, relay.port, app.port)
            known[app.name] = SessionApp(app.name, where, relay.port, way, relay=True)
        elif app.name not in known or known[app.name].relay:
            known[app.name] = SessionApp.tunneled(document.session.id, app, artifacts.folder)
    changed = replace(document, apps=tuple(known.values()))
    artifacts.write_json(DOCUMENT, changed.to_json())
    return changed


def _keep_urls(
    artifacts: Artifacts, document: SessionDocument, apps: List[App], removed: List[str], identity: Identity
) -> None:
    known = {entry.name: entry for entry in document.apps}
    urls = {}
    for app in apps:
        entry = known[app.name]
        address = (entry.address or "") if app.public and entry.port else app_urls.LOOPBACK
        port = entry.port or local_port(identity.session, app.name)
        urls[app.name] = app.access(address, port, identity.app_token(app.name))
    app_urls.change_apps(artifacts, urls, removed)


def _lines(apps: Sequence[AppState], document: SessionDocument) -> List[str]:
    tunnels = {entry.name: entry.tunnel for entry in document.apps if entry.tunnel}
    relays = {entry.name: f", published by a relay at port {entry.port}" for entry in document.apps if entry.relay}
    lines = [f"App {app.name}: {app.state}{relays.get(app.name, '')}" for app in apps]
    reached = [f"  {tunnels[app.name]}" for app in apps if app.name in tunnels]
    hint = [
        "Each is reached with its command, which lasts until it is stopped; the URLs are in the file apps beside ssh_config:"
    ]
    return (lines + hint + reached if reached else lines) or ["The session has no app."]
