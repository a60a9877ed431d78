# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents of a hostile agent, head or store: refused with the name of the sender, or free of control characters."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import PUBLIC_KEY, SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import BatchStatus
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerLog, Logs
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

PLAN = plan(request(cluster_size=3, cluster_mode="multi-node", authorized_keys=[PUBLIC_KEY]), "aab").to_json()
REPORT = {
    "name": "agent1",
    "reachable": True,
    "publish": "127.0.0.1",
    "capacity": {"millicpus": 1000, "memory": 1 << 30, "gpus": [{"id": "GPU-1", "shares": 1.0}], "cpu_ids": [0, 1]},
    "routes": ["10.0.0.0/8"],
    "containers": [{"id": SESSION, "session": SESSION, "hostname": "main1", "state": "running", "resources": {}}],
}
DOCUMENT = {
    "session": {"id": SESSION, "name": "train", "owner": "alice", "user": {"name": "work"}},
    "network": {"driver": "bridge"},
    "containers": [{"hostname": "main1", "agent": "a", "address": "10.0.0.2"}],
    "apps": [{"name": "lab"}],
}
EVIL = "x\n    ProxyCommand touch /tmp/x"
PLACES_OF_PLAN = [
    ("session", "name"),
    ("session", "owner"),
    ("session", "id"),
    ("session", "launch"),
    ("session", "group"),
    ("session", "image"),
    ("session", "on_failure"),
    ("session", "user", "name"),
    ("session", "user", "home"),
    ("session", "authorized_keys", 0),
    ("network", "name"),
    ("network", "subnet"),
    ("network", "gateway"),
    ("containers", 1, "hostname"),
    ("containers", 1, "agent"),
    ("containers", 1, "address"),
    ("containers", 1, "name"),
    ("containers", 1, "resources", "memory"),
    ("containers", 0, "ports", 0, "host_ip"),
    ("containers", 0, "ports", 0, "host_port"),
    ("containers", 0, "ports", 0, "name"),
]


def changed(document: Any, place: tuple[Any, ...], value: object) -> Any:
    made = copy.deepcopy(document)
    inner = made
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return made


def test_a_plan_arrives_as_it_was_sent() -> None:
    assert validation.plan(PLAN, "head").to_json() == PLAN


@pytest.mark.parametrize("place", PLACES_OF_PLAN, ids=str)
@pytest.mark.parametrize("value", [EVIL, "-oProxyCommand=x", "{{ 1 }}", ["main1"], {"a": 1}, ""], ids=repr)
def test_a_plan_with_another_value_is_refused_with_the_name_of_its_sender(
    place: tuple[Any, ...], value: object
) -> None:
    with pytest.raises(ComputeError, match=r"^The plan of head1 is refused: ") as caught:
        validation.plan(changed(PLAN, place, value), "head1")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("containers", 1, "hostname"), "sub2"),
        (("containers", 1, "address"), "192.0.2.1"),
        (("network", "fabric"), "fd00::/64"),
        (("session", "size"), 2),
        (("containers",), []),
        (("containers",), "main1"),
        (("session",), None),
    ],
    ids=str,
)
def test_a_plan_whose_parts_do_not_belong_together_is_refused(place: tuple[Any, ...], value: object) -> None:
    with pytest.raises(ComputeError, match=r"^The plan of head1 is refused: "):
        validation.plan(changed(PLAN, place, value), "head1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(place=st.sampled_from(PLACES_OF_PLAN), value=JSON)
def test_no_value_is_a_traceback(place: tuple[Any, ...], value: object) -> None:
    for length in range(1, len(place) + 1):
        try:
            validation.plan(changed(PLAN, place[:length], value), "head")
        except ComputeError:
            continue


def test_a_report_is_that_of_its_agent() -> None:
    assert validation.report(REPORT, "agent1") == AgentReport.from_json(REPORT)
    with pytest.raises(ComputeError, match=r"^The report of agent2 is refused: it has 'agent1' in name\."):
        validation.report(REPORT, "agent2")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("capacity", "millicpus"), -1),
        (("capacity", "millicpus"), 1 << 80),
        (("capacity", "cpu_ids"), ["0"]),
        (("publish",), "0.0.0.0; rm"),
        (("routes", 0), "everything"),
        (("containers", 0, "session"), "../x"),
        (("containers",), {}),
        (("reachable",), "no"),
    ],
    ids=str,
)
def test_a_report_with_another_value_is_refused(place: tuple[Any, ...], value: object) -> None:
    with pytest.raises(ComputeError, match=r"^The report of agent1 is refused: "):
        validation.report(changed(REPORT, place, value), "agent1")


@pytest.mark.parametrize("document", [None, [], "text", 7, {}])
def test_what_is_no_document_is_refused(document: object) -> None:
    with pytest.raises(ComputeError):
        validation.report(document, "agent1")
    with pytest.raises(ComputeError):
        validation.plan(document, "head")
    with pytest.raises(ComputeError):
        validation.session_document(json.dumps(document), "session.json")


@pytest.mark.parametrize(
    "place",
    [
        ("session", "id"),
        ("session", "name"),
        ("session", "user", "name"),
        ("network", "driver"),
        ("containers", 0, "hostname"),
        ("apps", 0, "name"),
    ],
    ids=str,
)
def test_a_document_of_a_session_has_names(place: tuple[Any, ...]) -> None:
    assert validation.session_document(json.dumps(DOCUMENT), "session.json").to_json() == DOCUMENT
    with pytest.raises(ComputeError):
        validation.session_document(json.dumps(changed(DOCUMENT, place, EVIL)), "session.json")
    with pytest.raises(ComputeError):
        validation.session_document(json.dumps(changed(DOCUMENT, place, None)), "session.json")


@pytest.mark.parametrize("evil", ["\x1b]0;title\x07", "\x9b2J", "a\u202eb", "\x08", "\x7f"])
def test_the_texts_of_a_result_are_visible(evil: str) -> None:
    given = {"failed": True, "msg": evil, "list": [{evil: (evil,)}], "plan": {"command": evil}, "number": 1}
    found = validation.result(given)
    assert evil not in json.dumps({name: value for name, value in found.items() if name != "plan"}, ensure_ascii=False)
    # It is compared with its request, which may have such a command.
    assert (found["plan"], found["number"]) == (given["plan"], 1)


FRAME = {
    "warnings": ["x"],
    "failure": {"code": "engine", "message": "x", "where": ""},
    "duration": 0.5,
    "network_duration": 1,
    "engine_calls": [[0.1, 0.2, "start it", "main1"]],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, odd)
            for name in FRAME
            for odd in ("x", [["x"]], {"code": ["x"]})
            if (name, odd) != ("warnings", [["x"]])
        ),
        ("warnings", 1),
        ("failure", {"where": 1}),
        ("duration", float("inf")),
        ("engine_calls", [[0.1, 0.2, "start it"]]),
        ("engine_calls", [["x", 0.2, "start it", ""]]),
    ],
)
def test_a_part_of_a_result_that_would_end_the_command_of_all_agents_is_left_out(name: str, value: object) -> None:
    given = {"failed": True, "msg": "x", **FRAME}
    assert validation.result(given) is given
    assert validation.result({**given, name: value}) == {key: part for key, part in given.items() if key != name}


def test_a_result_without_such_texts_is_not_copied() -> None:
    given = {"msg": "two\nlines\tand ümlaut", "n": [1, 2.5, None, True]}
    assert validation.result(given) is given


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("containers", 0, "session"), " 614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"),
        (("containers", 0, "resources"), {"gpus": [{"id": "GPU-1"}]}),
        (("containers", 0, "resources"), {"cpuset": "0-9999,0-9999"}),
        (("containers", 0, "resources"), {"cpuset": "0-9999,9999-0"}),
        (("containers", 0, "labels"), {"cluster.compute.container.resources": '{"cpuset": "-"}'}),
        (("containers", 0, "measured"), {"millicpus": 1}),
        (("containers", 0, "apps"), [{"name": "lab"}]),
        (("containers", 0, "created"), "long ago"),
        (("containers", 0), {"session": SESSION}),
        (("capacity", "gpus"), [{"id": "GPU-1", "shares": 10**400}]),
        (("capacity", "gpus"), [{"id": "GPU-1", "shares": 0}]),
        (("gpu_use",), [{"id": "GPU-1", "percent": float("nan"), "memory": 1, "capacity": 1}]),
        (("kernel",), {"processes": "many"}),
        (("rdma_ports",), [{"name": "mlx5_0:1", "other": 1}]),
        (("fabric",), {"interface": "eth1", "reason": 1}),
        (("containers", 0, "labels"), {"cluster.compute.session.fabric": "x"}),
        (("containers", 0, "labels"), {"cluster.compute.container.resources": '{"fabric": 1}'}),
        (("networks",), [{"subnets": ["x"]}]),
        *((("host_network",), {"address": address}) for address in ("::1", "0.0.0.0", "127.0.0.1", "224.0.0.1", "x")),
    ],
)
def test_a_report_with_a_part_that_would_stop_the_head_is_refused(place: tuple[Any, ...], value: object) -> None:
    with pytest.raises(ComputeError, match=r"^The report of agent1 is refused: "):
        validation.report(changed(REPORT, place, value), "agent1")


def test_a_plan_with_a_number_that_cannot_be_computed_with_is_refused() -> None:
    with pytest.raises(ComputeError, match=r"^The plan of head1 is refused: "):
        validation.plan(changed(PLAN, ("session", "began"), 10**400), "head1")


@pytest.mark.parametrize(
    ("address", "subnet"), [("::1", "::/8"), ("0.0.0.0", "0.0.0.0/8"), ("127.0.0.1", "127.0.0.0/8")]
)
def test_a_container_of_a_plan_has_an_address_that_others_reach(address: str, subnet: str) -> None:
    made = changed(PLAN, ("network", "subnet"), subnet)
    for number in range(3):
        made = changed(made, ("containers", number, "address"), address)
    with pytest.raises(ComputeError, match=r"^The plan of head1 is refused: .* in containers.0.address"):
        validation.plan(made, "head1")


def test_a_result_of_any_depth_has_no_control_characters() -> None:
    deep: Any = "\x7f"
    for _level in range(2000):
        deep = [deep]
    assert "\x7f" not in repr(validation.result({"msg": "a\x7fb"}))
    with pytest.raises(ComputeError, match="too deep"):
        validation.result({"msg": deep})


def test_an_answer_about_a_command_and_its_log_has_every_part() -> None:
    dead = {"hostname": "main1", "agent": "a", "state": "exited", "exit_code": 1, "oom_killed": False}
    status = validation.arrived(BatchStatus, {"exit_code": None, "dead": [dead]}, "answer", "a")
    assert [one.to_json() for one in status.dead] == [{**dead, "address": "", "rank": 0, "id": ""}]
    log = ContainerLog("main1", "running", "x")
    read = validation.answer(Logs)
    assert read({"logs": [{"hostname": "main1", "state": "running", "text": "x"}]}, "a") == Logs((log,))
    for refused in ({"dead": [{"hostname": "main1"}]}, {"exit_code": "0"}):
        with pytest.raises(ComputeError, match=r"^The answer of a is refused: "):
            validation.arrived(BatchStatus, refused, "answer", "a")
    with pytest.raises(ComputeError, match=r"^The answer of a is refused: "):
        read({"logs": [{"text": "x"}]}, "a")


def test_a_file_of_a_session_without_the_name_of_its_user_is_damaged() -> None:
    with pytest.raises(ComputeError, match="is damaged"):
        validation.session_document(json.dumps(changed(DOCUMENT, ("session", "user"), {"uid": 1})), "/x/session.json")


def test_a_report_of_a_later_release_can_have_further_parts() -> None:
    port = {"name": "mlx5_0:1", "link_layer": "InfiniBand", "active": True, "fabric": False, "host": False, "": None}
    report = validation.report({**REPORT, "rdma_ports": [port], "later": {"x": 1}}, "agent1")
    assert [one.name for one in report.rdma_ports] == ["mlx5_0:1"]


def test_a_report_says_nothing_else_in_the_place_of_its_capacity() -> None:
    """An agent could pose as another one, with containers that no rule has seen."""
    smuggled = {"name": "agent2", "reachable": False, "containers": 5, "address": "\x1b[0m"}
    capacity = {**REPORT["capacity"], **smuggled}
    report = validation.report({**REPORT, "capacity": capacity, "memory": "lots", "gpus": 7}, "agent1")
    assert report == validation.report(REPORT, "agent1")
