# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list shows the apps that run now, also those that came or went after the launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, carried_out, context, request, seen_with, with_apps

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import ended_apps
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport

A = agent("a", address="192.0.2.7")
APPS = [{"name": "lab", "port": 8888, "command": "serve"}, {"name": "raw", "port": 9000}]


def status(name: str, state: str = "ready") -> Json:
    return {"name": name, "state": state, "exit_code": None}


def related(agents: tuple[AgentReport, ...], *relays: Json) -> tuple[AgentReport, ...]:
    """The agents, of which main1 has these relays."""
    return tuple(
        replace(one, containers=tuple(seen_with(c, relays=list(relays)) for c in one.containers)) for one in agents
    )


@pytest.fixture
def there(store: Store) -> tuple[AgentReport, ...]:
    decision = launch(store, request(apps=APPS), context(A))
    assert decision.plan is not None
    store.change(store.need(decision.session.id), states.RUNNING, 1005.0, "every container is verified")
    return carried_out([A], decision.plan)


def apps(store: Store, agents: tuple[AgentReport, ...]) -> dict[str, tuple[str, bool]]:
    """The address of each app, and whether it has a port."""
    [listed] = list_sessions(store.live(), agents)
    return {app.name: (app.address, bool(app.port)) for app in listed.apps}


def test_an_app_that_was_removed_is_not_listed(store: Store, there: tuple[AgentReport, ...]) -> None:
    both = {"lab": ("127.0.0.1", True), "raw": ("127.0.0.1", True)}
    assert apps(store, with_apps(there, status("lab"))) == both
    assert apps(store, with_apps(there)) == {"raw": ("127.0.0.1", True)}
    assert apps(store, with_apps(there, status("lab", "ended"))) == {"raw": ("127.0.0.1", True)}
    assert apps(store, with_apps(there, status("lab", "failed"))) == both
    # Nothing is known of the apps of a container that does not run, or that was not asked.
    assert apps(store, there) == both


def test_an_app_of_a_role_is_listed_until_its_container_keeps_it_no_more(store: Store) -> None:
    board = {"name": "board", "port": 6006, "command": "exec board"}
    decision = launch(store, request(roles=[{"name": "ps", "size": 2, "apps": [board]}]), context(A))
    assert decision.plan is not None
    store.change(store.need(decision.session.id), states.RUNNING, 1005.0, "every container is verified")
    there = carried_out([A], decision.plan)

    def kept(*statuses: Json) -> tuple[AgentReport, ...]:
        """The agents, of which the first container of the role has these apps."""
        [on] = there
        containers = [seen_with(one, apps=list(statuses)) if one.hostname == "ps1" else one for one in on.containers]
        return (replace(on, containers=tuple(containers)),)

    for agents in (there, kept(status("board")), kept(status("board", "failed"))):
        assert apps(store, agents) == {"board": ("", False)}
    for agents in (kept(), kept(status("board", "ended"))):
        assert apps(store, agents) == {}
    assert [ended_apps(decision.plan, agents) for agents in (there, kept(status("board")), kept())] == [
        [],
        [],
        ["board"],
    ]
    [listed] = list_sessions(store.live(), kept(status("board", "failed")))
    assert listed.unhealthy == ("app board",)
    again = launch(store, store.need(decision.session.id).request, context(*kept(status("board", "failed"))))
    assert again.failed_apps == ("board",)


def test_an_app_that_came_later_is_listed_with_its_relay(store: Store, there: tuple[AgentReport, ...]) -> None:
    relay = {"name": "board", "host_ip": "0.0.0.0", "port": 30009}
    came = with_apps(there, status("lab"), status("board"), status("hidden"))
    listed = apps(store, related(came, relay))
    assert listed["board"] == ("192.0.2.7", True)
    assert listed["hidden"] == ("", False)
    assert apps(store, related(came, {**relay, "host_ip": "127.0.0.1"}))["board"] == ("127.0.0.1", True)
