# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The logins before a command says that there is nothing to do."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from samples import decision, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.summaries import summary
from ansible_collections.cluster.compute.plugins.plugin_utils._client.proof import Proof
from ansible_collections.cluster.compute.plugins.plugin_utils._session import verify as confirming

PLAN = plan(request(cluster_size=3), "aab")
REFUSED = ComputeError("sub2 does not accept ssh connections from main1: timed out.", "sub2")


class Play(SimpleNamespace):
    """Notes the steps that are carried out."""

    def __init__(self) -> None:
        super().__init__(artifacts="/nowhere", steps=[], phase=lambda _key: nullcontext())

    def on_each(self, agents: list[str], call: Any) -> None:
        asked = call(agents[0])
        self.steps.append((list(agents), asked.step, asked.params["hostnames"]))


def confirmed(
    monkeypatch: pytest.MonkeyPatch, *answers: ComputeError | None, session: str = PLAN.session.id
) -> tuple[Any, list[Any]]:
    left, own = list(answers), SimpleNamespace(bundle=lambda _agent: "")

    def verify(_play: Any, _plan: Any, seconds: int, proof: Proof) -> None:
        assert (seconds, [str(group) for group in proof.groups]) == (30, ["sub1", "sub2"])
        error = left.pop(0)
        if error:
            raise error

    monkeypatch.setattr(confirming, "verify", verify)
    monkeypatch.setattr(confirming, "Artifacts", lambda *_given: SimpleNamespace(session=session))
    monkeypatch.setattr(confirming, "SessionIdentity", SimpleNamespace(of=lambda *_given, **_more: own))
    play: Any = Play()
    found = confirming.confirm(play, PLAN, 60)
    assert left == []
    return found, play.steps


def state(found: Any) -> str:
    return summary(decision("running", PLAN), "/art", found=found)[0]


def test_nothing_is_to_do_where_all_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found, steps = confirmed(monkeypatch, None)
    assert (found, steps) == ({}, [])
    assert state(found).startswith("Session train: RUNNING, nothing to do (")


def test_lost_files_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, steps = confirmed(monkeypatch, REFUSED, None)
    assert steps == [(["a", "b"], "containers.refilled", ["main1", "sub2"])]
    assert state(found).startswith("Session train: RUNNING, its files in main1, sub2 are written again (")


def test_what_still_takes_no_login_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _steps = confirmed(monkeypatch, REFUSED, REFUSED)
    message = "RUNNING (degraded), no login to sub2: sub2 does not accept ssh connections from main1: timed out ("
    assert state(found).startswith(f"Session train: {message}")


def test_a_controller_without_the_keys_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert confirmed(monkeypatch, session="") == ({}, [])


def test_a_large_session_is_asked_by_the_heads_of_its_groups() -> None:
    large = Proof.of(plan(request(cluster_size=40), "a" * 40))
    assert [str(group) for group in large.heads().groups] == ["sub1", "sub17", "sub33"]
