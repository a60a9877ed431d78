# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every rule of every variable: what is taken, and what is refused with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, exactly

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Mount, User
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Demand
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request, check_request
from ansible_collections.cluster.compute.plugins.module_utils._planning.rules import App

BASE = {"name": "train", "owner": "alice"}
DATA = {"source": "/data", "target": "/data"}
NAME = "a name has 4 to 64 letters, digits, '-', '_' or '.', and starts and ends with a letter or digit"
OWNER = "an owner has 1 to 32 letters, digits, '-' or '_', and starts and ends with a letter or digit"
POOL = "an address pool is an IPv4 network of at least /27, as in 10.201.0.0/16"
SIZE = "it is a whole number from 1 to 1000"
AMOUNT = "an amount is a number with an optional unit b, k, m, g or t, as in 512m or 16g"
CPUS = "CPUs are a number with at most three decimals, as in 4 or 0.5"
GPUS = "it is a whole number, or a fraction below one where the agents declare shares"
VARIABLE = "the name of a variable has letters, digits and '_', and does not start with a digit"
IMAGE = "it is the reference of an image, as in registry/name:tag or name@sha256:…"
TARGET = "a target is an absolute path without '.' and '..', and not one that the session itself uses"
MOUNT = "an entry has source and target, and may have type, mode, options"
APP_NAME = "an app's name has lower-case letters, digits and '-', and is not ssh"
APP = "an entry has name and port, and may have preferred_port, public"


def refusal(variables: dict[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        check_request({**BASE, **variables})
    return refused.value.message


@pytest.mark.parametrize(
    ("variable", "value", "shown", "rule"),
    [
        ("name", "abc", "'abc'", NAME),
        ("name", "n" * 65, "'%s'" % ("n" * 65), NAME),
        ("name", "n" * 90, "'%s…" % ("n" * 78), NAME),
        ("name", "my train", "'my train'", NAME),
        ("name", "my/train", "'my/train'", NAME),
        ("name", "-train", "'-train'", NAME),
        ("name", "train\n", r"'train\n'", NAME),
        ("name", 1.5, "1.5", NAME),
        (
            "owner",
            "a.b",
            "'a.b'",
            OWNER,
        ),
        ("cluster_size", 0, "0", SIZE),
        ("cluster_size", -1, "-1", SIZE),
        ("cluster_size", "three", "'three'", SIZE),
        ("cluster_size", 10**6, "1000000", SIZE),
        ("cluster_size", "1001", "'1001'", SIZE),
        ("cluster_size", 2.0, "2.0", SIZE),
        ("cluster_size", True, "True", SIZE),
        ("cluster_size", "9" * 30, "'%s'" % ("9" * 30), SIZE),
        ("cluster_mode", "many", "'many'", "it is one of: single-node, multi-node"),
        ("cluster_mode", ["single-node"], "['single-node']", "it is one of: single-node, multi-node"),
        ("image", "", "''", IMAGE),
        ("image", "-x", "'-x'", IMAGE),
        ("image", "a b", "'a b'", IMAGE),
        ("image", "a\n", r"'a\n'", IMAGE),
        ("cpus", 0, "0", "a container needs at least 0.01 CPU"),
        ("cpus", "0.001", "'0.001'", "a container needs at least 0.01 CPU"),
        ("cpus", -1, "-1", CPUS),
        ("cpus", "many", "'many'", CPUS),
        ("memory", "1x", "'1x'", AMOUNT),
        ("memory", "-1g", "'-1g'", AMOUNT),
        ("memory", "5m", "'5m'", "a container needs at least 6m"),
        ("memory", 0, "0", "a container needs at least 6m"),
        ("shm", "0", "'0'", "/dev/shm needs a size above 0"),
        ("shm", "big", "'big'", AMOUNT),
        ("gpus", -1, "-1", GPUS),
        ("gpus", 1.5, "1.5", GPUS),
        ("gpus", "nan", "'nan'", GPUS),
        ("gpus", "two", "'two'", GPUS),
        ("gpus", True, "True", GPUS),
        ("gpus", [1], "[1]", GPUS),
        ("cpu_pinning", "maybe", "'maybe'", "it is true or false"),
        ("resource_group", "a b", "'a b'", "a group has 1 to 64 letters, digits, '-', '_' or '.'"),
        ("resource_group", 7, "7", "a group has 1 to 64 letters, digits, '-', '_' or '.'"),
        ("agents", "a,b", "'a,b'", "it is a list"),
        ("agents", {"a": 1}, "{'a': 1}", "it is a list"),
        ("agents", [1], "1", "it is a text"),
        ("agents_policy", "strict", "'strict'", "it needs session_agents"),
        ("agents_policy", "hard", "'hard'", "it is one of: preferred, strict"),
        ("strategy", "random", "'random'", "it is one of: pack, spread"),
        ("pull", "sometimes", "'sometimes'", "it is one of: missing, always, never"),
        ("bootstrap_timeout", 0, "0", "it is a whole number from 1 to 2592000"),
        ("verify_timeout", -1, "-1", "it is a whole number from 1 to 2592000"),
        ("pull_timeout", "1h", "'1h'", "it is a whole number from 1 to 2592000"),
        ("priority", 101, "101", "it is a whole number from 0 to 100"),
        ("environment", ["A=B"], "['A=B']", "it maps names to values"),
        ("environment", {"A=B": "c"}, "'A=B'", VARIABLE),
        ("environment", {"A\nB": "c"}, r"'A\nB'", VARIABLE),
        ("environment", {"1A": "c"}, "'1A'", VARIABLE),
        ("environment", {"BACKENDAI_X": "c"}, "'BACKENDAI_X'", "BACKENDAI_* variables belong to the session"),
        ("mounts", "/data", "'/data'", "it is a list"),
        ("mounts", ["/data:/data"], "'/data:/data'", MOUNT),
        ("mounts", [{"source": "/data"}], "{'source': '/data'}", MOUNT),
        ("mounts", [{**DATA, "size": 1}], "{'source': '/data', 'target': '/data', 'size': 1}", MOUNT),
        ("mounts", [{**DATA, "target": "data"}], "'data'", TARGET),
        ("mounts", [{**DATA, "target": "/"}], "'/'", TARGET),
        ("mounts", [{**DATA, "target": "/a/../etc"}], "'/a/../etc'", TARGET),
        ("mounts", [{**DATA, "target": "/./etc"}], "'/./etc'", TARGET),
        ("mounts", [{**DATA, "target": "//etc"}], "'//etc'", TARGET),
        ("mounts", [{**DATA, "target": "/a//b"}], "'/a//b'", TARGET),
        ("mounts", [{**DATA, "target": "/etc/ssh"}], "'/etc/ssh'", TARGET),
        ("mounts", [{**DATA, "target": "/opt/"}], "'/opt/'", TARGET),
        ("mounts", [{**DATA, "target": "/a\nb"}], r"'/a\nb'", "a path is a text without control characters"),
        ("mounts", [{**DATA, "source": 7}], "7", "a path is a text without control characters"),
        ("mounts", [{**DATA, "source": "a/b"}], "'a/b'", "a volume's name has letters, digits, '-', '_' or '.'"),
        ("mounts", [{**DATA, "source": "data", "type": "bind"}], "'data'", "a folder of the host is an absolute path"),
        (
            "mounts",
            [{**DATA, "options": {"o": "ro"}}],
            "{'o': 'ro'}",
            "a folder of the host takes no options; volumes and NFS folders do",
        ),
        ("mounts", [{**DATA, "type": "nfs"}], "'/data'", "an NFS source is server:/path"),
        ("mounts", [{**DATA, "type": "tmpfs"}], "'tmpfs'", "it is one of: bind, volume, nfs"),
        ("mounts", [{**DATA, "mode": "rwx"}], "'rwx'", "it is one of: rw, ro"),
        ("mounts", [DATA, {**DATA, "target": "/data/"}], "'/data'", "two folders cannot have the same target"),
        ("apps", {"name": "x"}, "{'name': 'x'}", "it is a list"),
        ("apps", [{"name": "web"}], "{'name': 'web'}", APP),
        (
            "apps",
            [{"name": "Web", "port": 80}],
            "'Web'",
            APP_NAME,
        ),
        (
            "apps",
            [{"name": "ssh", "port": 80}],
            "'ssh'",
            APP_NAME,
        ),
        (
            "apps",
            [{"name": "web", "port": 80}] * 2,
            "'web'",
            "two apps cannot have the same name",
        ),
        ("command", ["ls"], "['ls']", "it is a text"),
        ("command", "a\0b", r"'a\x00b'", "it is a text"),
        ("command_timeout", 60, "60", "it needs a session_command"),
        ("command_timeout", -1, "-1", "it is a whole number from 0 to 2592000"),
        ("bootstrap", 5, "5", "it is a text"),
        ("on_failure", "retry", "'retry'", "it is one of: keep, terminate"),
        ("user", {"name": "root"}, "{'name': 'root'}", "it may have uid, gid"),
        ("user", 1000, "1000", "it may have uid, gid"),
        ("network_encrypted", "on", "'on'", "it is true or false"),
        ("network_pool", "10.0.0.0/8", "'10.0.0.0/8'", "it is a list"),
        (
            "network_pool",
            ["10.0.0.0/28"],
            "'10.0.0.0/28'",
            POOL,
        ),
        ("network_pool", [], "[]", POOL),
        ("port_range", "80-90", "'80-90'", "a range is FIRST-LAST with ports from 1024 to 65535"),
    ],
)
def test_bad_input_is_refused_by_variable_value_and_rule(variable: str, value: object, shown: str, rule: str) -> None:
    assert refusal({variable: value}) == "session_%s: %s: %s." % (variable, shown, rule)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"memory": "1g", "shm": "2g"},
            "session_shm: '2g': shared memory is part of the memory, 1g here.",
        ),
        ({"cpus": 1.5, "cpu_pinning": True}, "session_cpus: 1.5: pinned CPUs are whole CPUs."),
        (
            {"environment": {"DEBUG": True}},
            "session_environment: DEBUG: True: a value is a text or a number; put it in quotes.",
        ),
        (
            {"environment": {"TEXT": "a\nb"}},
            r"session_environment: TEXT: 'a\nb': a value has no newline or control character.",
        ),
        (
            {"environment": {"NOTHING": None}},
            "session_environment: NOTHING: None: a value is a text or a number; put it in quotes.",
        ),
        ({"apps": [{"name": "web", "port": 0}]}, "session_apps: port: 0: it is a whole number from 1 to 65535."),
        ({"apps": [{"name": "web", "port": 22}]}, "session_apps: port: 22: port 22 is the session's own SSH."),
        (
            {"apps": [{"name": "web", "port": 80, "preferred_port": 70000}]},
            "session_apps: preferred_port: 70000: it is a whole number from 0 to 65535.",
        ),
        ({"apps": [{"name": "web", "port": 80, "public": "yep"}]}, "session_apps: public: 'yep': it is true or false."),
        ({"mounts": [{**DATA, "options": "nolock"}]}, "session_mounts: options: 'nolock': it maps names to values."),
        ({"user": {"uid": 0}}, "session_user: uid: 0: it is a whole number from 1 to 2147483647."),
        ({"user": {"gid": "staff"}}, "session_user: gid: 'staff': it is a whole number from 1 to 2147483647."),
    ],
)
def test_bad_input_inside_and_between_variables(variables: dict[str, Any], message: str) -> None:
    assert refusal(variables) == message


@pytest.mark.parametrize("missing", ["name", "owner"])
def test_name_and_owner_must_be_given(missing: str) -> None:
    given_ = {name: value for name, value in BASE.items() if name != missing}
    with pytest.raises(InputError, match=exactly("session_%s: None: it must be given." % missing)):
        check_request(given_)


def test_what_is_not_said_has_the_documented_default() -> None:
    assert check_request(BASE) == Request(
        name="train",
        owner="alice",
        size=1,
        mode="single-node",
        millicpus=1000,
        memory=GIB,
        shm=64 << 20,
        gpus=0.0,
        group="default",
        agents_policy="preferred",
        strategy="pack",
        network_pool=("10.201.0.0/16",),
        port_range="30000-31000",
        bootstrap_timeout=300,
        verify_timeout=60,
        pull="missing",
        pull_timeout=1800,
    )


FULL = {
    **BASE,
    "cluster_size": "4",
    "cluster_mode": "multi-node",
    "image": "registry:5000/team/image@sha256:0123",
    "cpus": "2",
    "memory": "16g",
    "shm": "1g",
    "gpus": "2",
    "cpu_pinning": "yes",
    "resource_group": "gpu.a100",
    "agents": ["a", "b"],
    "agents_policy": "strict",
    "strategy": "spread",
    "priority": 90,
    "environment": {"A": "x=y", "N": 5, "F": 0.5, "R": "<% rank %>", "T": "a\tb"},
    "mounts": [
        {"source": "/data/", "target": "/data/"},
        {"source": "cache", "target": "/home/work/.cache", "mode": "ro"},
        {"source": "nas:/export/a b".replace(" ", "_"), "target": "/nas", "type": "nfs", "options": {"o": "nolock"}},
    ],
    "apps": [{"name": "jupyter", "port": 8888, "preferred_port": 8888, "public": True}, {"name": "web", "port": "80"}],
    "command": "python train.py\n",
    "command_timeout": 60,
    "bootstrap": "pip install x",
    "on_failure": "terminate",
    "user": {"uid": 2000},
    "network_encrypted": "true",
    "network_pool": ["10.9.0.0/16"],
    "port_range": "40000-40100",
    "bootstrap_timeout": "1200",
    "verify_timeout": 90,
    "pull": "always",
    "pull_timeout": 3600,
}


def test_everything_said_comes_into_one_normal_form() -> None:
    assert check_request(FULL) == Request(
        name="train",
        owner="alice",
        size=4,
        mode="multi-node",
        image="registry:5000/team/image@sha256:0123",
        millicpus=2000,
        memory=16 * GIB,
        shm=GIB,
        gpus=2.0,
        cpu_pinning=True,
        group="gpu.a100",
        agents=("a", "b"),
        agents_policy="strict",
        strategy="spread",
        priority=90,
        environment={"A": "x=y", "N": "5", "F": "0.5", "R": "<% rank %>", "T": "a\tb"},
        mounts=(
            Mount("/data/", "/data", "bind", "rw"),
            Mount("cache", "/home/work/.cache", "volume", "ro"),
            Mount("nas:/export/a_b", "/nas", "nfs", "rw", {"o": "nolock"}),
        ),
        apps=(App("jupyter", 8888, 8888, True), App("web", 80)),
        command="python train.py\n",
        command_timeout=60,
        bootstrap="pip install x",
        on_failure="terminate",
        user=User(uid=2000, gid=2000),
        network_encrypted=True,
        network_pool=("10.9.0.0/16",),
        port_range="40000-40100",
        bootstrap_timeout=1200,
        verify_timeout=90,
        pull="always",
        pull_timeout=3600,
    )


def test_the_demand_is_what_placement_reads() -> None:
    each = PerContainer(2000, 16 * GIB, GIB, 2.0, True)
    expected = Demand(4, each, "multi-node", "gpu.a100", "spread", ("a", "b"), "strict")
    assert check_request(FULL).demand() == expected


@pytest.mark.parametrize("variables", [BASE, FULL])
def test_the_normal_form_survives_json(variables: dict[str, Any]) -> None:
    request = check_request(variables)
    document = json.loads(json.dumps(request.to_json()))
    assert document == request.to_json()
    again = Request.from_json(document)
    assert again == request
    assert again.digest == request.digest
    assert again.differences(request) == []


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "cluster_size": st.integers(1, 1000),
            "cpus": st.integers(10, 10**6).map(lambda millis: millis / 1000),
            "memory": st.integers(64 << 20, 1 << 50),
            "gpus": st.sampled_from([0, 0.25, 1, 8]),
            "priority": st.integers(0, 100),
            "environment": st.dictionaries(
                st.from_regex(r"[A-Z_]{1,5}", fullmatch=True),
                st.text(st.characters(exclude_categories=["Cc", "Cs"])),
            ),
            "command": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        },
    )
)
def test_any_good_request_survives_json(variables: dict[str, Any]) -> None:
    request = check_request({**BASE, **variables})
    again = Request.from_json(json.loads(json.dumps(request.to_json())))
    assert (again, again.digest) == (request, request.digest)


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        ({"cpus": "2"}, {"cpus": 2.0}),
        ({"memory": "1g"}, {"memory": "1024m"}),
        ({"gpus": 1}, {"gpus": "1.0"}),
        ({"cluster_size": "3"}, {"cluster_size": 3}),
        ({"mounts": [DATA]}, {"mounts": [{"source": "/data", "target": "/data/", "type": "bind", "mode": "rw"}]}),
        ({"environment": {"A": 1, "B": "2"}}, {"environment": {"B": "2", "A": "1"}}),
        ({"user": {"uid": 1000}}, {}),
        ({"network_encrypted": False}, {"network_encrypted": "no"}),
    ],
)
def test_the_same_said_in_other_words_is_the_same_request(mine: dict[str, Any], yours: dict[str, Any]) -> None:
    first, second = check_request({**BASE, **mine}), check_request({**BASE, **yours})
    assert first.digest == second.digest
    assert first.differences(second) == []


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"cluster_size": 3}, ["size"]),
        ({"cpus": 2, "environment": {"A": "1"}}, ["millicpus", "environment"]),
        ({"mounts": [DATA]}, ["mounts"]),
        ({"user": {"uid": 7}}, ["user"]),
        ({"apps": [{"name": "web", "port": 80}]}, ["apps"]),
    ],
)
def test_differences_are_named(variables: dict[str, Any], names: list[str]) -> None:
    other = check_request({**BASE, **variables})
    assert check_request(BASE).differences(other) == other.differences(check_request(BASE)) == names
    assert check_request(BASE).digest != other.digest


def test_how_it_is_launched_is_kept_and_makes_no_other_request() -> None:
    manner = {"bootstrap_timeout": 1200, "verify_timeout": 90, "pull": "never", "pull_timeout": 60}
    other = check_request({**BASE, **manner})
    assert {name: other.to_json()[name] for name in manner} == manner
    assert check_request(BASE).differences(other) == []
    assert check_request(BASE).digest == other.digest


def test_a_request_that_was_stored_without_how_it_is_launched_has_the_defaults() -> None:
    document = check_request(BASE).to_json()
    for name in ("bootstrap_timeout", "verify_timeout", "pull", "pull_timeout"):
        del document[name]
    assert Request.from_json(document) == check_request(BASE)


def test_a_session_that_no_pool_can_hold_is_refused() -> None:
    """At once, for it would wait for ever."""
    pools = ["10.201.0.0/27", "10.202.0.0/26"]

    def asked(**variables: Any) -> Request:
        return check_request({"name": "train", "owner": "alice", **variables})

    assert asked(cluster_size=30, network_pool=pools).size == 30
    message = (
        "session_cluster_size: 31: so many containers need a /25, and session_network_pool has none "
        "(10.201.0.0/27, 10.202.0.0/26)."
    )
    with pytest.raises(InputError, match=exactly(message)):
        asked(cluster_size=31, network_pool=pools)
