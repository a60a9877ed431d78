# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""References to steps: each leads to the step that it types, and each step is called by a reference or by a task of a role."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import get_type_hints

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.secrets import SecretFiles
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import LogRequest
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import OF_AGENT, OF_HEAD, run_step, step_of
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import call, steps

ROOT = Path(__file__).resolve().parents[5]
REFERENCES = {name: value for name, value in vars(steps).items() if isinstance(value, call.Step)}


def names() -> Iterator[str]:
    """The names of all steps."""
    for noun in sorted(OF_AGENT.nouns | OF_HEAD.nouns):
        module = import_module(f"ansible_collections.cluster.compute.plugins.module_utils._steps.{noun}")
        yield from (f"{noun}.{verb}" for verb in vars(module) if step_of(noun, verb))


@pytest.mark.parametrize("reference", sorted(REFERENCES))
def test_a_reference_has_the_name_of_its_step(reference: str) -> None:
    name = REFERENCES[reference].name
    assert reference == name.replace(".", "_").upper()
    assert step_of(*name.split(".")) is not None


def test_each_step_is_called() -> None:
    """A step of the roles alone needs no reference."""
    tasks = "\n".join(path.read_text() for path in ROOT.glob("roles/*/tasks/*.yml"))
    called = {step.name for step in REFERENCES.values()} | set(re.findall(r"call: (\w+\.\w+)", tasks))
    assert sorted(set(names()) - called) == []


@pytest.mark.parametrize("name", sorted(names()))
def test_python_3_8_can_evaluate_the_signature(name: str) -> None:
    """It evaluates no ``int | None``: the parameters of a step are read by their types."""
    found = get_type_hints(step_of(*name.split(".")))
    assert not [hint for hint in found.values() if isinstance(hint, UnionType)]


def test_documents_arrive_as_they_were_sent() -> None:
    """A plan in its short form, and keys as one text, from which Ansible can hide values of its own."""
    whole, asked = plan(request(cluster_size=3), "aab"), LogRequest("s", ("main1",), tail=3)
    keys = SecretFiles({"a": "YQ=="}, {"A": "a"}, "A=a")
    sent = steps.CONTAINERS_STARTED(plan=whole.part("a"), secrets=keys).params
    assert isinstance(sent["secrets"], str)
    arrived = json.loads(json.dumps([sent, steps.LOGS_READ(wanted=asked).params]))

    def step(_place: object, plan: Plan, secrets: SecretFiles) -> list[object]:
        return [plan, secrets]

    assert run_step("x.y", step, None, arrived[0]) == [whole.part("a"), keys]
    assert LogRequest.from_parameter(arrived[1]["wanted"]) == asked
    for wrong in ({"plan": {}}, {"plan": "x"}, {"secrets": "?"}):
        with pytest.raises(InputError, match=r"^x\.y: (plan|secrets): "):
            run_step("x.y", step, None, {**arrived[0], **wrong})


def test_a_call_has_the_name_of_the_step_and_its_parameters() -> None:
    made = steps.NETWORK_ABSENT(sessions=["s"], deadline=3)
    assert made == call.Call("network.absent", {"sessions": ["s"], "deadline": 3}, call.as_sent)
    assert made.with_params(state_dir="/d").params == {"sessions": ["s"], "deadline": 3, "state_dir": "/d"}
