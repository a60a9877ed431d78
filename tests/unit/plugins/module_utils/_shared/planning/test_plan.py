# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import LAUNCH, SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import non_default_fields
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.declaration import (
    BatchSettings,
    ContainerSettings,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import (
    Network,
    Plan,
    Port,
    Resources,
    Session,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import ObservedContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import container_id
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import (
    show_placement,
    with_user_environment,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

THREE = request(cluster_size=3, cluster_mode="multi-node")


def test_main1_alone_says_that_it_has_a_command() -> None:
    made = plan(request(cluster_size=3, command="train"))
    assert [one.labels[label.BATCH] for one in made.containers] == ["true", "", ""]


def specs(made: Plan) -> list[str]:
    return [one.labels[label.SPEC] for one in made.containers]


def test_a_setting_of_request_and_plan_has_the_same_type_and_default_in_both() -> None:
    declared = {one.name: one for settings in (ContainerSettings, BatchSettings) for one in fields(settings)}
    planned = {one.name: one for one in fields(Session)}
    for name, one in declared.items():
        assert (planned[name].type, planned[name].default) == (one.type, one.default), name
        assert ("uncounted" in planned[name].metadata) == ("uncounted" in one.metadata), name


def test_only_identities_and_what_a_plan_changes_are_declared_by_themselves() -> None:
    shared = {field.name for field in fields(ContainerSettings)} | {field.name for field in fields(BatchSettings)}
    both = {field.name for field in fields(Session)} & {field.name for field in fields(Request)}
    assert both - shared == {
        "name",
        "owner",
        "group",
        "mode",
        "size",
        "image",
        "user",
        "mounts",
        "secrets",
        "apps",
        "roles",
    }


@pytest.mark.parametrize("asked", [request(), THREE, request(cluster_size=2, gpus=0.5, environment={"A": "ü\t"})])
def test_a_plan_survives_json(asked: Request) -> None:
    made = plan(asked)
    document = json.loads(json.dumps(made.to_json()))
    assert document == made.to_json()
    assert Plan.from_json(document) == made
    assert Plan.from_json(document).to_json() == document


def test_the_session_and_its_containers() -> None:
    made = plan(THREE, "aab")
    assert (made.session.id, made.session.name, made.session.owner) == (SESSION, "train", "alice")
    assert (made.session.mode, made.session.size, made.session.request) == ("multi-node", 3, THREE.digest)
    assert [(one.name, one.agent, one.address, one.rank, one.local_rank) for one in made.containers] == [
        ("alice.train.main1", "a", "10.201.0.2", 0, 0),
        ("alice.train.sub1", "a", "10.201.0.3", 1, 1),
        ("alice.train.sub2", "b", "10.201.0.4", 2, 0),
    ]
    assert made.agents == ["a", "b"]
    assert [one.hostname for one in made.on("a")] == ["main1", "sub1"]


def test_main1_is_the_session_and_subs_follow_from_it() -> None:
    made = plan(THREE)
    assert made.main.id == SESSION
    ids = [one.id for one in made.containers]
    assert len(set(ids)) == 3
    assert all(str(uuid.UUID(one)) == one for one in ids)
    assert ids == [container_id(SESSION, one.hostname) for one in plan(request(cluster_size=9)).containers][:3]
    assert container_id(str(uuid.uuid4()), "sub1") != ids[1]


@pytest.mark.parametrize(
    ("placement", "driver", "encrypted"),
    [("aaa", "bridge", False), ("aab", "overlay", True)],
    ids=["bridge", "overlay"],
)
def test_the_network_follows_the_placement(placement: str, driver: str, encrypted: bool) -> None:
    network = plan(replace(THREE, network_encrypted=True), placement).network
    assert (network.driver, network.encrypted) == (driver, encrypted)
    assert (network.subnet, network.gateway, network.ip_range) == ("10.201.0.0/27", "10.201.0.1", "10.201.0.16/28")
    assert SESSION[:8] in network.name
    # A Swarm's network takes no dot in its name.
    assert "." not in network.name or driver == "bridge"
    assert network.labels[label.SESSION] == SESSION


def test_the_labels_are_what_a_plan_can_be_made_from_again() -> None:
    made = plan(THREE, "aab")
    shared = {
        label.SCHEMA: "1",
        label.SESSION: SESSION,
        label.NAME: "train",
        label.OWNER: "alice",
        label.GROUP: "default",
        label.MODE: "multi-node",
        label.SIZE: "3",
        label.PLACEMENT: '[["a",2],["b",1]]',
        label.SUBNET: "10.201.0.0/27",
        label.REQUEST: THREE.digest,
        label.LAUNCH: LAUNCH,
    }
    assert made.network.labels == shared
    for one in made.containers:
        assert shared.items() <= dict(one.labels).items()
        assert one.labels[label.CONTAINER] == one.id
        assert (one.labels[label.ROLE], one.labels[label.INDEX]) == (
            one.role,
            str(one.index),
        )
        assert one.labels[label.RANK] == str(one.rank)
        assert Resources.from_json(json.loads(one.labels[label.RESOURCES])) == one.resources
        # Empty, not left out: an image that was made of a session's main1 has that one's.
        assert (one.labels[label.PORTS] == "") == (one.rank > 0)
        assert one.labels[label.BATCH] == one.labels[label.SECRETS] == ""
    ports = json.loads(made.main.labels[label.PORTS])
    assert tuple(Port.from_json(port) for port in ports) == made.main.ports
    # The engine accepts only valid label names, with strings as values.
    assert all(isinstance(text, str) for one in made.containers for text in one.labels.values())


@pytest.mark.parametrize(
    "variables",
    [
        {"image": "another"},
        {"cpus": 2},
        {"memory": "2g"},
        {"shm": "128m"},
        {"mounts": [{"source": "/data", "target": "/data"}]},
        {"user": {"uid": 2000}},
        {"network_pool": ["10.9.0.0/16"]},
        {"cluster_size": 4},
        {"bootstrap": "true"},
    ],
)
def test_whatever_a_container_is_made_from_is_in_its_digest(variables: dict[str, object]) -> None:
    before = specs(plan(request(cluster_size=3)))
    after = specs(plan(request(**{"cluster_size": 3, **variables})))
    assert all(one != other for one, other in zip(before, after, strict=False))


def test_another_launch_of_the_same_is_the_same_container() -> None:
    assert specs(plan(THREE, launch="another")) == specs(plan(THREE))


def test_the_users_variables_are_in_the_digest_as_the_request_has_them() -> None:
    asked = request(cluster_size=3, environment={"A": "<% rank %>"})
    made = plan(asked)
    assert specs(made) != specs(plan(request(cluster_size=3)))
    merged = with_user_environment(made, [{"A": "0"}, {"A": "1"}, {"A": "2"}])
    assert specs(merged) == specs(made)
    # The same again is the same: a repair finds what a launch made.
    assert with_user_environment(merged, [{"A": "0"}, {"A": "1"}, {"A": "2"}]) == merged


def test_what_an_agent_may_change_is_in_the_digest_of_its_container() -> None:
    placed = specs(plan(THREE, "aab"))
    assert specs(plan(THREE, "aac"))[2] != placed[2]
    assert specs(plan(THREE, "aab", mtu=1400)) != placed
    assert specs(plan(THREE, "aab", taken_names={"b": {"alice.train.sub2"}})) == placed


def test_a_new_field_changes_no_digest() -> None:
    """A variable that a release adds has its default in every session that exists."""

    @dataclass(frozen=True)
    class LaterNetwork(Network):
        later: str = "usual"

    network = plan(THREE, "aab").network
    later = LaterNetwork(**{known.name: getattr(network, known.name) for known in fields(network)})
    assert non_default_fields(later) == non_default_fields(network)
    assert non_default_fields(replace(later, later="other")) == {**non_default_fields(network), "later": "other"}


def test_an_nfs_folder_is_a_volume_of_the_session() -> None:
    mounts = [
        {"source": "nas:/export", "target": "/data", "type": "nfs", "mode": "ro", "options": {"o": "nolock,soft"}},
        {"source": "/scratch", "target": "/scratch"},
        {"source": "cache", "target": "/cache"},
    ]
    nfs, bind, volume = plan(request(mounts=mounts)).session.mounts
    assert (nfs.type, nfs.target, nfs.mode) == ("volume", "/data", "ro")
    assert nfs.options == {"type": "nfs", "o": "addr=nas,ro,nolock,soft", "device": ":/export"}
    assert nfs.source.startswith("alice.train.")
    assert (bind.type, bind.source, volume.type, volume.source) == ("bind", "/scratch", "volume", "cache")


def test_an_nfs_server_may_have_an_ipv6_address() -> None:
    mounts = [{"source": "2001:db8::1:/export", "target": "/data", "type": "nfs"}]
    (nfs,) = plan(request(mounts=mounts)).session.mounts
    assert nfs.options == {"type": "nfs", "o": "addr=2001:db8::1,rw", "device": ":/export"}


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(1, 5)), max_size=6))
def test_a_placement_is_read_as_it_was_shown(runs: list[tuple[str, int]]) -> None:
    agents = [agent for agent, count in runs for _ in range(count)]
    labels = {label.PLACEMENT: show_placement(agents)}
    assert ObservedContainer("id", "session", labels=labels).placement == tuple(agents)


def test_a_placement_of_a_thousand_is_a_short_label() -> None:
    assert show_placement(["a"] * 600 + ["b"] * 400) == '[["a",600],["b",400]]'
