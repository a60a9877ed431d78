# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""session.json: made from a plan, and written again as it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from samples import GIB, SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.session_json import SessionDocument
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import local_port
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.summaries import session_apps

ROW = {"id": SESSION, "name": "train", "state": "RUNNING", "created": 100.0, "changed": 105.0}
TUNNEL = "ssh -N -o ExitOnForwardFailure=yes -F /tmp/x/train/ssh_config -L %s main1"
THREE = plan(request(cluster_size=3, cluster_mode="multi-node"), "aab")
LEAST: Json = {
    "session": {"id": SESSION, "name": "train", "owner": "alice", "user": {"name": "work"}},
    "network": {"driver": "bridge"},
    "containers": [{"hostname": "main1"}],
    "apps": [{"name": "lab"}],
}


def with_apps(made: Plan) -> Plan:
    apps = (*made.main.ports, Port("web", 80, "127.0.0.1", 8080), Port("board", 6006, "0.0.0.0", 30001))
    return replace(made, containers=(replace(made.main, ports=apps), *made.containers[1:]))


def launched(made: Plan, timings: Mapping[str, float] | None = None) -> SessionDocument:
    return SessionDocument.of_plan(made, ROW, session_apps(made, "192.0.2.7", "/tmp/x/train"), timings or {})


def read(document: Json) -> SessionDocument:
    return validation.session_document(json.dumps(document), "session.json")


def test_the_document_of_a_launch() -> None:
    document = launched(with_apps(THREE), {"create": 1.23456, "start": 2})
    assert document.to_json() == {
        "schema": 1,
        "session": {
            "id": SESSION,
            "name": "train",
            "owner": "alice",
            "group": "default",
            "state": "RUNNING",
            "mode": "multi-node",
            "size": 3,
            "image": "reference",
            "user": {"name": "work", "uid": 1000, "gid": 1000},
            "created": 100.0,
            "running": 105.0,
        },
        "network": {"name": THREE.network.name, "driver": "overlay", "subnet": "10.201.0.0/27"},
        "resources": {"cpus": 1.0, "memory": GIB, "shm": 64 << 20, "gpus": 0},
        "containers": [
            {
                "id": one.id,
                "hostname": one.hostname,
                "agent": one.agent,
                "rank": one.rank,
                "local_rank": one.local_rank,
                "address": one.address,
                "gpus": [],
            }
            for one in THREE.containers
        ],
        "apps": [
            {"name": "ssh", "address": "127.0.0.1", "port": 30000},
            {"name": "web", "address": "127.0.0.1", "port": 8080, "tunnel": TUNNEL % "8080:main1:80"},
            {"name": "board", "address": "192.0.2.7", "port": 30001, "tunnel": TUNNEL % "30001:main1:6006"},
        ],
        "command": None,
        "timings": {"create": 1.235, "start": 2.0},
    }


def test_an_app_of_a_role_has_its_container() -> None:
    board = {"name": "board", "port": 6006, "command": "exec board"}
    made = plan(request(roles=[{"name": "worker", "size": 2, "apps": [board]}]))
    way = TUNNEL % f"{local_port(SESSION, 'board')}:worker1:6006"
    entry = launched(made).to_json()["apps"][1]
    assert entry == {"name": "board", "address": "", "port": 0, "tunnel": way, "container": "worker1"}


def test_a_session_with_roles_has_the_amounts_of_each() -> None:
    made = plan(request(roles=[{"name": "ps", "size": 2, "cpus": 0.5, "image": "own:1"}]))
    amounts = {"name": "ps", "size": 2, "image": "own:1", "cpus": 0.5, "memory": GIB, "shm": 64 << 20, "gpus": 0}
    assert launched(made).to_json()["roles"][1] == amounts


@pytest.mark.parametrize("command", ["", "exec train"])
def test_a_document_is_the_same_after_it_was_read(command: str) -> None:
    made = with_apps(plan(request(cluster_size=3, cluster_mode="multi-node", gpus=1, command=command), "aab"))
    document = launched(made, {"create": 1.0})
    assert read(document.to_json()) == document


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"later": {"plan": [None]}, "others": 1},
        {"schema": None, "command": None, "timings": None, "roles": []},
        {"resources": "many", "schema": [2], "command": {"result": 1, "later": 2}},
        {"network": {"driver": "host", "name": None, "mtu": 1500}},
        {"containers": [], "apps": []},
        {"containers": [{"hostname": "main1", "rank": 0, "gpus": [], "later": None, "others": {}}]},
        {"apps": [{"name": "lab", "address": "", "port": 0, "tunnel": "", "relay": False, "container": "main1"}]},
    ],
)
def test_a_document_is_written_again_as_it_was_read(changes: Json) -> None:
    document = {**LEAST, **changes}
    assert read(document).to_json() == document
    result = {"result": "SUCCESS", "reason": "it ended"}
    assert read(document).with_result(**result).to_json() == {**document, "command": result}


def test_what_a_document_may_lack() -> None:
    found = read(LEAST)
    [container], [app] = found.containers, found.apps
    assert (container.agent, container.rank, container.gpus, found.session.user.uid) == ("", None, None, None)
    assert (app.hostname, app.port, app.relay, found.command) == ("main1", None, None, None)
