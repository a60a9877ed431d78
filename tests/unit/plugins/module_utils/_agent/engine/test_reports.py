# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's answers as reports show them."""

from __future__ import annotations

from typing import Any

import pytest
from engine_lab import Shape
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import (
    EngineInfo,
    container_entry,
    content_of,
    engine_identity,
    engine_name,
    ignored_entries,
    image_entry,
    is_member,
    is_ours,
    network_entry,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.label_rules import invalid_labels
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import EngineNetwork, ImageState
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.schema import fault, rules_of


def listed(**changes: Any) -> dict[str, Any]:
    plan = Shape().plan()
    container = plan.containers[1]
    place = {"IPAMConfig": {"IPv4Address": container.address}, "IPAddress": ""}
    return {
        "Id": "e1",
        "Names": ["/" + container.name],
        "Image": plan.session.image,
        "State": "exited",
        "Created": 1767225600,
        "Labels": {**container.labels, "foreign": "label"},
        "Ports": [{"PrivatePort": 22, "PublicPort": 30000, "Type": "tcp"}, {"PrivatePort": 80, "Type": "tcp"}],
        "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.2"}, plan.network.name: place}},
        **changes,
    }


def test_container_entry() -> None:
    state = {"Status": "exited", "ExitCode": 137, "OOMKilled": True}
    entry = container_entry(listed(), {"State": state})
    assert entry.hostname == "sub1"
    assert (entry.role, entry.index, entry.rank) == ("sub", 1, 1)
    assert (entry.state, entry.exit_code, entry.oom_killed) == ("exited", 137, True)
    assert entry.created == 1767225600.0
    assert entry.address == "10.213.77.3"
    assert entry.network.startswith("tester-test-")
    assert entry.ports == (30000,)
    assert "foreign" not in entry.labels
    assert entry.resources.millicpus == 500


def test_a_container_on_a_fabric_has_its_private_address_and_fails_without_it() -> None:
    network = listed()["Labels"]["cluster.compute.session.name"]
    places = {
        "docker_gwbridge": {"IPAMConfig": None, "IPAddress": "172.18.0.3"},
        f"fabric-{network}": {"IPAMConfig": {"IPv4Address": "10.213.77.35"}},
        network: {"IPAMConfig": {"IPv4Address": "10.213.77.3"}},
    }
    labels = {**listed()["Labels"], "cluster.compute.session.fabric": "10.213.77.32/27"}
    labels["cluster.compute.session.mode"] = "multi-node"
    more = {"Labels": labels, "HostConfig": {"NetworkMode": network}, "State": "running"}
    entry = container_entry(listed(**more, NetworkSettings={"Networks": places}))
    assert (entry.network, entry.address, entry.state) == (network, "10.213.77.3", "running")
    del places[f"fabric-{network}"]
    assert container_entry(listed(**more, NetworkSettings={"Networks": places})).state == "apart"
    assert (
        container_entry(listed(**{**more, "State": "exited"}, NetworkSettings={"Networks": places})).state == "exited"
    )


def test_a_relay_belongs_to_its_session_and_is_no_member() -> None:
    member = listed()
    relay = listed(
        Names=[member["Names"][0].replace("sub1", "relay1")],
        Labels={
            **member["Labels"],
            "cluster.compute.container.role": "relay",
            "cluster.compute.container.index": "1",
            "cluster.compute.container.relay": "board",
        },
    )
    assert (is_ours(member), is_member(member)) == (True, True)
    assert (is_ours(relay), is_member(relay)) == (True, False)
    # The label of an image does not hide a member.
    assert is_member({**member, "Labels": {**member["Labels"], "cluster.compute.container.relay": "board"}})


def test_a_container_is_ours_by_its_labels_and_its_name() -> None:
    """Containers of an image that was committed from a session's container inherit its labels."""
    one = listed()
    identity = one["Labels"]["cluster.compute.session"]
    assert is_ours(one)
    assert is_ours({**one, "Names": ["/other/alias", *one["Names"]]})
    assert is_ours({**one, "Names": ["%s.%s" % (one["Names"][0], identity[:8])]})
    assert not is_ours(listed(Names=["/eager_turing"]))
    assert not is_ours({**one, "Names": [one["Names"][0] + ".00000000"]})
    assert not is_ours(listed(Labels={"foreign": "label"}))
    assert not is_ours({"Id": "e1", "Names": ["/x"], "Labels": None})
    # What the engine has begun to remove.
    assert is_ours(listed(Names=None))


def test_main_keeps_its_ports_while_it_is_down() -> None:
    labels = {"cluster.compute.container.ports": '[{"host_port": 30001}]'}
    assert container_entry(listed(Ports=[], Labels=labels)).ports == (30001,)


def test_labels_that_somebody_broke_do_not_break_the_report() -> None:
    labels = {"cluster.compute.session": "x", "cluster.compute.container.index": "one"}
    entry = container_entry(listed(Labels=labels, NetworkSettings={}))
    assert (entry.index, entry.resources, entry.address) == (0, Resources(), "")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("session", "../../etc"),
        ("session.placement", '[["a", 1000000000]]'),
        ("session.placement", "{"),
        ("session.placement", "5"),
        ("session.first", "1,,2"),
        ("session.slots", "[[0],[1,1]]"),
        ("session.slots", "[[0],[]]"),
        ("session.slots", "[[0],[10000]]"),
        ("session.slots", "[[0],[true]]"),
        ("session.slots", "[]"),
        ("session.subnet", "everywhere"),
        ("session.request", "a\x1b[31m"),
        ("launch", "two\nlines"),
        ("container.rank", "\N{SUPERSCRIPT TWO}"),
        ("container.rank", "-1"),
        ("container.resources", "[1]"),
        ("container.resources", '{"millicpus": -100000}'),
        ("container.resources", '{"memory": 1e400}'),
        ("container.resources", '{"memory": %s}' % ("9" * 4400)),
        ("container.resources", '{"gpus": [{"shares": 1}]}'),
        ("container.resources", '{"gpus": [{"id": "GPU-1", "shares": NaN}]}'),
        ("container.resources", '{"cpuset": "all"}'),
        ("container.resources", '{"cpuset": "-"}'),
        ("container.resources", '{"cpuset": "0-999999999"}'),
        ("container.resources", '{"cpuset": "%s"}' % ",".join(["0-9999"] * 2000)),
        ("container.resources", "[" * 100000),
        ("container.ports", "5"),
        ("container.ports", '[{"host_port": 30001}]'),
        ("container.ports", '[{"name": "a", "host_ip": "x", "host_port": 1, "container_port": 1}]'),
    ],
)
def test_a_container_with_a_label_that_cannot_be_read_is_ignored_and_named(label: str, text: str) -> None:
    good = listed()
    name = "cluster.compute." + label
    bad = {**good, "Labels": {**good["Labels"], name: text}}
    assert not is_ours(bad)
    others = {**bad, "Names": ["/eager_turing"]}
    [named] = ignored_entries([good, bad, others])
    assert named.label == name


def test_the_labels_of_every_plan_can_be_read() -> None:
    for planned in (plan(request(cluster_size=4), "aabb"), plan(request(gpus=0.25)), plan(request(cpu_pinning=True))):
        assert [invalid_labels(container.labels) for container in planned.containers] == [""] * len(planned.containers)


def test_engine_name_is_not_that_of_a_link() -> None:
    assert engine_name({"Names": ["/other/alias", "/own"]}) == "own"
    assert engine_name({}) == ""


def test_network_entry() -> None:
    network = {"Name": "n", "Driver": "bridge", "IPAM": {"Config": [{"Subnet": "10.0.0.0/8"}, {}]}, "Labels": None}
    assert network_entry(network) == EngineNetwork("n", "bridge", ("10.0.0.0/8",))


@pytest.mark.parametrize(
    ("swarm", "expected"),
    [
        ({}, ("inactive", "", False)),
        ({"LocalNodeState": "inactive"}, ("inactive", "", False)),
        ({"LocalNodeState": "active", "ControlAvailable": True, "Cluster": {"ID": "c1"}}, ("active", "c1", True)),
        ({"LocalNodeState": "active", "Cluster": None}, ("active", "", False)),
    ],
)
def test_swarm_place(swarm: dict[str, Any], expected: tuple[Any, ...]) -> None:
    shown = EngineInfo.of({"Swarm": swarm}).swarm
    assert (shown.state, shown.cluster_id, shown.manager) == expected


def test_image_entry() -> None:
    assert image_entry("a:1", None) == ImageState("a:1")
    assert image_entry("a:1", {"Id": "sha256:0", "Architecture": "arm64"}).architecture == "aarch64"


@pytest.mark.parametrize(
    ("owner", "made", "known"),
    [
        ("alice", "2026-03-01T00:00:00.123456+00:00", True),
        ("alice", "2026-03-01T00:00:00 and more", False),
        ("al\nice", "2026-03-01T00:00:00Z", False),
    ],
)
def test_an_image_of_a_container_has_its_time_and_its_owner(owner: str, made: str, *, known: bool) -> None:
    labels = {"cluster.compute.origin.owner": owner, "org.opencontainers.image.created": made}
    entry = image_entry("a:1", {"Id": "sha256:0", "Created": "2026-03-01T00:00:00Z", "Config": {"Labels": labels}})
    assert (entry.made, entry.owner) == ((made, owner) if known else ("", ""))
    assert fault(rules_of(ImageState), entry.to_json()) is None


def test_labels_that_another_user_has_written_do_not_make_a_report_unreadable() -> None:
    member = listed()
    labels = member["Labels"]
    assert network_entry({"Name": "x", "Labels": {"cluster.compute.session": "x\ny"}}).session == ""
    assert not is_ours({**member, "Labels": {**labels, "cluster.compute.session": ""}, "Names": None})
    assert invalid_labels({**labels, "cluster.compute.container.relay": "x\ny"}) == "cluster.compute.container.relay"
    assert invalid_labels({**labels, "cluster.compute.session": "{%s}" % labels["cluster.compute.session"]})
    empty = {**labels, "cluster.compute.container.resources": '{"gpus": "", "memory": 1}'}
    assert container_entry({**member, "Labels": empty}).resources.gpus == ()


def test_the_content_of_an_image_is_the_same_where_an_engine_leaves_out_empty_fields() -> None:
    """As Docker Engine 29 does: https://docs.docker.com/engine/deprecated/."""
    layers, known = {"Layers": ["sha256:1"]}, {"Env": ["A=1"], "Cmd": ["sh"]}
    empty = {"Entrypoint": None, "User": "", "WorkingDir": "", "Labels": {}}
    newer = content_of({"RootFS": layers, "Config": known})
    assert content_of({"RootFS": layers, "Config": {**known, **empty}}) == newer
    assert content_of({"RootFS": layers, "Config": {**known, "User": "1"}}) != newer


def test_an_engine_is_known_by_the_network_that_it_makes_at_each_start() -> None:
    """Not by one that a user has named so on an engine without it."""
    own = {"Name": "bridge", "Driver": "bridge", "Id": "7f2c"}
    assert engine_identity([{"Name": "none", "Driver": "null", "Id": "1"}, own]) == "7f2c"
    assert engine_identity([{"Name": "bridge", "Driver": "macvlan", "Id": "2"}]) == ""
    assert engine_identity([]) == ""
