# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A decision of the head on its way to a controller: the same at both ends, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import SESSION, decision, exactly, plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import (
    DecidedSession,
    Decision,
    FencedAgent,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

PLAN = plan(request(cluster_size=3, cluster_mode="multi-node"), "aab")
ROW = {**running_row(PLAN), "launch": PLAN.session.launch, "holder": {"machine": "m", "pid": 42, "user": "alice"}}
FULL = decision(
    "repair",
    PLAN,
    ROW,
    reason="because",
    missing=("sub1",),
    added=("sub2",),
    removed=(("sub3", "b"),),
    moves=(("sub1", "c", "b"),),
    failed_apps=("lab",),
    ended_apps=("board",),
    new_limits=("lifetime",),
    remove=(SESSION,),
    former_size=2,
    fenced={"c": FencedAgent((SESSION,), rejoins=True, swarm="s1")},
    changed=True,
    is_new=True,
    has_next_command=True,
    restarts_all=True,
    ended=(DecidedSession.from_json({"id": SESSION, "name": "old"}),),
    ended_folders=(SESSION,),
)


def arrived(**changes: Any) -> Decision:
    """The decision as a controller gets it from the head C(a), with changed fields of its document."""
    document: Json = json.loads(json.dumps({**FULL.to_json(), **changes}))
    return validation.decision(document, "a")


def test_a_decision_is_the_same_at_both_ends() -> None:
    found = arrived()
    assert found == FULL
    assert (found.session.data, found.session.launch, found.session.state) == (ROW, PLAN.session.launch, "RUNNING")


@pytest.mark.parametrize("changes", [{"plan": None}, {"plan": {}}, {"unknown": 1}, {"ended": None}, {"is_new": None}])
def test_what_a_decision_may_lack(changes: Json) -> None:
    assert (arrived(**changes).plan is None) == ("plan" in changes)


def test_the_least_of_a_decision() -> None:
    session = {"id": SESSION, "name": "train"}
    found = validation.decision({"outcome": "pending", "session": session}, "a")
    assert found == decision("pending", row=session)
    assert (found.session.launch, found.session.holder, found.plan) == ("", None, None)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"outcome": "grown"}, "has 'grown' in outcome"),
        ({"outcome": None}, "has None in outcome"),
        ({"session": {"name": "train"}}, "has None in session.id"),
        ({"session": {"id": SESSION}}, "has None in session.name"),
        ({"session": {**ROW, "id": "x"}}, "has 'x' in session.id"),
        ({"session": {**ROW, "name": "a\nb"}}, "has 'a\\nb' in session.name"),
        ({"session": {**ROW, "launch": 1}}, "has 1 in session.launch"),
        ({"session": {**ROW, "holder": {"pid": "1"}}}, "has {'pid': '1'} in session.holder"),
        ({"session": []}, "has [] in session"),
        ({"reason": 1}, "has 1 in reason"),
        ({"missing": None}, "has None in missing"),
        ({"added": 1}, "has 1 in added"),
        ({"added": ["../sub2"]}, "has '../sub2' in added.0"),
        ({"removed": ["sub2"]}, "has 'sub2' in removed.0"),
        ({"removed": [["sub2", "c", "d"]]}, "has ['sub2', 'c', 'd'] in removed.0"),
        ({"removed": [["sub2", None]]}, "has ['sub2', None] in removed.0"),
        ({"moves": [["sub2", "c"]]}, "has ['sub2', 'c'] in moves.0"),
        ({"failed_apps": ["a/b"]}, "has 'a/b' in failed_apps.0"),
        ({"ended_apps": "lab"}, "has 'lab' in ended_apps"),
        ({"new_limits": [1]}, "has 1 in new_limits.0"),
        ({"remove": ["old"]}, "has 'old' in remove.0"),
        ({"former_size": "2"}, "has '2' in former_size"),
        ({"former_size": True}, "has True in former_size"),
        ({"fenced": {"c": ["sub2"]}}, "has {'c': ['sub2']} in fenced"),
        ({"ended": ["old"]}, "has ['old'] in ended"),
    ],
)
def test_another_form_is_refused_with_sender_field_and_value(changes: Json, found: str) -> None:
    end = "Nothing is done with it; find out who has changed it there."
    with pytest.raises(ComputeError, match=exactly(f"The decision of a is refused: it {found}. {end}")):
        arrived(**changes)


def test_its_plan_has_its_own_rules() -> None:
    with pytest.raises(ComputeError, match=r"^The plan of a is refused: it has 'x' in network\.driver\."):
        arrived(plan={**PLAN.to_json(), "network": {**PLAN.network.to_json(), "driver": "x"}})


@pytest.mark.parametrize("name", ["outcome", "session"])
def test_a_decision_without_a_needed_field_is_refused(name: str) -> None:
    document = {key: value for key, value in FULL.to_json().items() if key != name}
    with pytest.raises(ComputeError, match=f"^The decision of a is refused: it has None in {name}"):
        validation.decision(document, "a")
