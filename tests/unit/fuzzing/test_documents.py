# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changed plans, requests, results, reports and files of sessions: refused in one message, or usable and equal to what was sent."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import fields
from typing import Any

from hostile import Choices, assert_one_message, assert_visible, changed, changed_bytes, fuzzed
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import (
    controller_config,
    default_address,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.declaration import ContainerSettings
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._client.shared_config import renamed_config
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement
from ansible_collections.cluster.compute.plugins.plugin_utils._session.session_file import checked_sessions

ASKED = request(
    cluster_size=3,
    cluster_mode="multi-node",
    gpus=1,
    command="train",
    environment={"A": "<% rank %>"},
    mounts=[{"source": "/data", "target": "/data"}, {"source": "nas:/x", "target": "/x", "type": "nfs"}],
    apps=[{"name": "lab", "port": 8888, "command": "lab"}],
    secrets=[{"name": "token", "value": "x", "environment": "TOKEN"}],
)
MADE = plan(ASKED, "aab", ports=(Port("ssh", 22, "127.0.0.1", 30000), Port("lab", 8888, "127.0.0.1", 30001)))
PLAN, SHORT, REQUEST = MADE.to_json(), MADE.to_short_json(), json.loads(json.dumps(ASKED.to_json()))
OF_ROLES = request(
    roles=[{"name": "ps", "size": 2, "image": "own:1", "command": "serve", "ready": 80, "environment": {"A": "1"}}]
)
PLAN_OF_ROLES, REQUEST_OF_ROLES = plan(OF_ROLES).to_json(), json.loads(json.dumps(OF_ROLES.to_json()))
RESULT = {
    "changed": True,
    "session": {"id": MADE.session.id, "name": "train"},
    "plan": PLAN,
    "warnings": ["x"],
    "msg": "text",
}
DOCUMENT = {
    "session": {"id": MADE.session.id, "name": "train", "owner": "alice", "user": {"name": "work", "uid": 1000, "gid": 1000}},
    "containers": [{"id": MADE.session.id, "hostname": "main1", "agent": "a", "rank": 0, "address": "10.0.0.2", "gpus": ["GPU-1"]}],
    "network": {"driver": "bridge"},
    "apps": [{"name": "lab", "address": "127.0.0.1:30001", "port": 30001, "tunnel": "", "relay": False}],
    "command": {"result": "", "reason": ""},
}  # fmt: skip
FILE = "/home/alice/.cluster-compute/train/session.json"
KEYWORDS = re.compile(r"^ *(\w+)", re.MULTILINE)


def configs(made: Plan) -> str:
    own = controller_config(made, default_address(made), "/home/alice/.cluster-compute/train")
    return own + renamed_config(made.session.name, own)


USUAL = set(KEYWORDS.findall(configs(MADE)))


def arrived(document: Any) -> Plan | None:
    try:
        return validation.plan(document, "head1")
    except ComputeError as error:
        assert_one_message(error.message)
        return None


@fuzzed(2500)
def test_a_plan_is_refused_or_is_the_same_and_adds_no_line_to_the_configuration_of_ssh(choices: Choices) -> None:
    made = arrived(changed(choices.of((PLAN, SHORT, PLAN_OF_ROLES)), choices))
    if made is None:
        return
    assert Plan.from_json(made.to_json()) == made
    with suppress(ComputeError):  # a main1 without a port for SSH
        assert set(KEYWORDS.findall(configs(made))) <= USUAL


@fuzzed(1500)
def test_a_plan_that_agrees_with_its_request_is_what_its_owner_has_decided(choices: Choices) -> None:
    made = arrived(changed(PLAN, choices))
    if made is None:
        return
    try:
        check_agreement(made, ASKED, ("a", "b"), "head1")
    except ComputeError as error:
        assert_one_message(error.message)
        return
    session = made.session
    assert (session.name, session.owner, session.image, session.size, session.command) == (
        ASKED.name, ASKED.owner, ASKED.image, ASKED.size, ASKED.command,
    )  # fmt: skip
    assert (session.user, session.mounts, session.apps) == (ASKED.user, MADE.session.mounts, ASKED.apps)
    assert [secret.name for secret in session.secrets] == [secret.name for secret in ASKED.secrets]
    for known in fields(ContainerSettings):
        assert getattr(session, known.name) == getattr(ASKED, known.name)
    for found, wanted in zip(made.containers, MADE.containers, strict=True):
        assert found.environment.items() <= wanted.environment.items() or found.agent != wanted.agent
        assert found.agent in ("a", "b")


def asking(request: Json) -> SessionView:
    """A session of a list with this request."""
    return SessionView(MADE.session.id, "train", "alice", "PENDING", request=request)


@fuzzed(2000)
def test_a_request_of_the_store_is_refused_or_can_be_read(choices: Choices) -> None:
    sent = changed(choices.of((REQUEST, REQUEST_OF_ROLES)), choices)
    found, refused = checked_sessions([asking(sent)], "head1")
    for message in refused:
        assert_one_message(message)
    for session in found:
        assert Request.from_json(session.request.to_json()) == session.request
        ASKED.differences(session.request)


@fuzzed(1500)
def test_texts_of_a_result_are_visible(choices: Choices) -> None:
    try:
        found = validation.result({"agent": changed(RESULT, choices), **RESULT})
    except ComputeError as error:
        assert_one_message(error.message)
        return
    assert_visible(found, ("plan", "request"))


@fuzzed(2000)
def test_the_document_of_a_session_is_refused_or_visible(choices: Choices) -> None:
    text = json.dumps(changed(DOCUMENT, choices)).encode()
    content = changed_bytes(text, choices) if choices.below(4) == 0 else text
    try:
        found = validation.session_document(content, FILE).to_json()
    except ComputeError as error:
        assert_one_message(error.message)
        return
    assert_visible(found)
    written = json.dumps(found, sort_keys=True)
    assert json.dumps(validation.session_document(written, FILE).to_json(), sort_keys=True) == written


@fuzzed(800)
def test_the_id_of_a_session_is_refused_or_the_name_of_a_file(choices: Choices) -> None:
    try:
        assert re.fullmatch("[0-9a-f-]{36}", validation.session_id(choices.value(), "head1"))
    except ComputeError as error:
        assert_one_message(error.message)


def test_the_samples_are_accepted() -> None:
    assert arrived(PLAN) == arrived(SHORT) == MADE
    check_agreement(MADE, ASKED, ("a", "b"), "head1")
    assert checked_sessions([asking(REQUEST), asking(REQUEST_OF_ROLES)], "head1")[1] == []
    assert validation.result(RESULT) == RESULT
    assert validation.session_document(json.dumps(DOCUMENT), FILE).to_json() == DOCUMENT
