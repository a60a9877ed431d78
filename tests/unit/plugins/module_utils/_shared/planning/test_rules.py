# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule of every variable: which values are refused, and with which message."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import check_environment
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning import suboptions
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.app_rules import check_apps
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.mount_rules import check_mounts
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request
from ansible_collections.cluster.compute.plugins.module_utils._shared.value_rules import check_image

BASE = {"name": "train", "owner": "alice"}
DATA = {"source": "/data", "target": "/data"}
NAME = "must have 4 to 64 letters, digits, '-', '_' or '.', and must start and end with a letter or digit"
OWNER = "must have 1 to 32 letters, digits, '-' or '_', and must start and end with a letter or digit"
POOL = "must be a private IPv4 network of at least /27, as in 10.201.0.0/16"
SIZE = "must be a whole number from 1 to 1000"
AMOUNT = "must be a number with an optional unit b, k, m, g or t, as in 512m or 16g, and at most 1048576t"
PATH = "must be a path on one line of at most 4096 characters, without control characters"
CPUS = "must be a number with at most three decimals, as in 4 or 0.5"
GPUS = "must be a whole number, or a fraction below 1 where the agents declare shares"
VARIABLE = "must have letters, digits and '_' only, and must not start with a digit"
IMAGE = "must be an image reference, as in registry/name:tag or name@sha256:…"
TARGET = "must be an absolute path without '.' and '..' that the session does not use itself"
DOCKER_MOUNT = (
    "must be SOURCE:TARGET, SOURCE:TARGET:ro or a dictionary with source and target, as in /srv/data:/data or "
    "{source: /srv/data, target: /data}"
)
MOUNT = "must be a dictionary with source and target, and optionally type, mode, options, local"
OPTIONS = "must be a dictionary of values by printable names"
VOLUME = "must be a volume name of letters, digits, '-', '_' or '.'"
DIRECTORY = "must be an absolute path, because it is a directory of the agents"
APP_NAME = "must have lower-case letters, digits and '-' only, and must not be ssh"
APP = (
    "must be a dictionary with name and port, and optionally preferred_port, public, command, ready, environment, path"
)


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
        ("cluster_mode", "many", "'many'", "must be one of: single-node, multi-node"),
        ("cluster_mode", ["single-node"], "['single-node']", "must be one of: single-node, multi-node"),
        ("image", "", "''", IMAGE),
        ("image", "-x", "'-x'", IMAGE),
        ("image", "a b", "'a b'", IMAGE),
        ("image", "a\n", r"'a\n'", IMAGE),
        ("image", "Upper", "'Upper'", IMAGE),
        ("image", "a:b:c", "'a:b:c'", IMAGE),
        ("image", "a//b", "'a//b'", IMAGE),
        ("image", "a@sha256:12", "'a@sha256:12'", IMAGE),
        ("cpus", 0, "0", "must be at least 0.01"),
        ("cpus", "0.001", "'0.001'", "must be at least 0.01"),
        ("cpus", -1, "-1", CPUS),
        ("cpus", "many", "'many'", CPUS),
        ("memory", "1x", "'1x'", AMOUNT),
        ("memory", "-1g", "'-1g'", AMOUNT),
        ("memory", "5m", "'5m'", "must be at least 6m"),
        ("memory", 0, "0", "must be at least 6m"),
        ("memory", "1048577t", "'1048577t'", AMOUNT),
        ("shm", "0", "'0'", "must be greater than 0"),
        ("shm", "big", "'big'", AMOUNT),
        ("gpus", -1, "-1", GPUS),
        ("gpus", 1.5, "1.5", GPUS),
        ("gpus", "nan", "'nan'", GPUS),
        ("gpus", "two", "'two'", GPUS),
        ("gpus", True, "True", GPUS),
        ("gpus", [1], "[1]", GPUS),
        ("cpu_pinning", "maybe", "'maybe'", "must be true or false"),
        ("resource_group", "a b", "'a b'", "must have 1 to 64 letters, digits, '-', '_' or '.'"),
        ("resource_group", 7, "7", "must have 1 to 64 letters, digits, '-', '_' or '.'"),
        ("agents", {"a": 1}, "{'a': 1}", "must be a list"),
        ("agents", [1], "1", "must be a string"),
        ("agents_policy", "strict", "'strict'", "needs session_agents"),
        ("agents_policy", "hard", "'hard'", "must be one of: preferred, strict"),
        ("strategy", "random", "'random'", "must be one of: pack, spread"),
        ("pull", "sometimes", "'sometimes'", "must be one of: missing, always, never"),
        ("bootstrap_timeout", 0, "0", "must be a whole number from 1 to 2592000"),
        ("verify_timeout", -1, "-1", "must be a whole number from 1 to 2592000"),
        ("pull_timeout", "1h", "'1h'", "must be a whole number from 1 to 2592000 (1h is 3600 seconds)"),
        ("priority", 101, "101", "must be a whole number from 0 to 100"),
        ("environment", ["A=B"], "['A=B']", "must be a dictionary of names and values"),
        ("environment", {"A=B": "c"}, "'A=B'", VARIABLE),
        ("environment", {"A\nB": "c"}, r"'A\nB'", VARIABLE),
        ("environment", {"1A": "c"}, "'1A'", VARIABLE),
        (
            "environment",
            {"BACKENDAI_X": "c"},
            "'BACKENDAI_X'",
            "must not start with BACKENDAI_: the session sets these variables",
        ),
        ("mounts", {"/data": "/data"}, "{'/data': '/data'}", "must be a list"),
        ("mounts", "/data", "'/data'", DOCKER_MOUNT),
        ("mounts", ["/data:"], "'/data:'", DOCKER_MOUNT),
        ("mounts", ["/data:/data:z"], "'/data:/data:z'", DOCKER_MOUNT),
        ("mounts", ["nas:/export:/data:ro"], "'nas:/export:/data:ro'", DOCKER_MOUNT),
        ("mounts", ["/data:/etc"], "'/etc'", TARGET),
        ("mounts", [{"source": "/data"}], "{'source': '/data'}", MOUNT),
        ("mounts", [{**DATA, "size": 1}], "{'source': '/data', 'target': '/data', 'size': 1}", MOUNT),
        ("mounts", [{**DATA, "target": "data"}], "'data'", TARGET),
        ("mounts", [{**DATA, "target": "/"}], "'/'", TARGET),
        ("mounts", [{**DATA, "target": "/a/../etc"}], "'/a/../etc'", TARGET),
        ("mounts", [{**DATA, "target": "/./etc"}], "'/./etc'", TARGET),
        ("mounts", [{**DATA, "target": "//etc"}], "'//etc'", TARGET),
        ("mounts", [{**DATA, "target": "/a//b"}], "'/a//b'", TARGET),
        ("mounts", [{**DATA, "target": "/etc/ssh"}], "'/etc/ssh'", TARGET),
        (
            "mounts",
            [{**DATA, "target": "/var/run/nvidia-container-devices/all"}],
            "'/var/run/nvidia-container-devices/all'",
            TARGET,
        ),
        ("mounts", [{**DATA, "target": "/opt/"}], "'/opt/'", TARGET),
        ("mounts", [{**DATA, "target": "/a\nb"}], r"'/a\nb'", PATH),
        ("mounts", [{**DATA, "target": "/a\tb"}], r"'/a\tb'", PATH),
        ("mounts", [{**DATA, "target": "/a\x85b"}], r"'/a\x85b'", PATH),
        ("mounts", ["/a\u2028b:/data"], r"'/a\u2028b'", PATH),
        ("mounts", ["/a\u202eb:/data"], r"'/a\u202eb'", PATH),
        ("mounts", [{**DATA, "source": "/" + "a" * 4096}], "'/" + "a" * 77 + "…", PATH),
        ("mounts", [{**DATA, "source": 7}], "7", PATH),
        ("mounts", [{"source": "v1", "target": "/v", "options": ["o"]}], "options: ['o']", OPTIONS),
        ("mounts", [{"source": "v1", "target": "/v", "options": {"o\u2028": 1}}], r"options: {'o\u2028': 1}", OPTIONS),
        ("mounts", [{**DATA, "source": "a/b", "type": "volume"}], "'a/b'", VOLUME),
        ("mounts", [{**DATA, "source": "a b"}], "'a b'", VOLUME),
        ("mounts", [{**DATA, "source": "a/b"}], "'a/b'", DIRECTORY),
        ("mounts", ["./data:/data"], "'./data'", DIRECTORY),
        ("mounts", ["~/data:/data"], "'~/data'", DIRECTORY),
        (
            "mounts",
            [{**DATA, "source": "data", "type": "bind"}],
            "'data'",
            DIRECTORY,
        ),
        (
            "mounts",
            [{**DATA, "options": {"o": "ro"}}],
            "{'o': 'ro'}",
            "must be empty: only volumes and NFS directories have options",
        ),
        ("mounts", [{**DATA, "type": "nfs"}], "'/data'", "must be server:/path for an NFS directory"),
        ("mounts", [{**DATA, "type": "tmpfs"}], "'tmpfs'", "must be one of: bind, volume, nfs"),
        (
            "mounts",
            [{"source": "cluster-compute-runtime-1", "target": "/rt"}],
            "'cluster-compute-runtime-1'",
            "must not start with cluster-compute-runtime-: these volumes are the agents' own",
        ),
        ("mounts", [{**DATA, "mode": "rwx"}], "'rwx'", "must be one of: rw, ro"),
        ("mounts", [DATA, {**DATA, "target": "/data/"}], "'/data'", "must be the target of one mount only"),
        ("apps", {"name": "x"}, "{'name': 'x'}", "must be a list"),
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
            "must be the name of one app only",
        ),
        ("command", ["ls"], "['ls']", "must be a string"),
        ("command", "a\0b", r"'a\x00b'", "must be a string"),
        ("command_timeout", 60, "60", "needs a session_command"),
        ("command_timeout", -1, "-1", "must be a whole number from 0 to 2592000"),
        ("bootstrap", 5, "5", "must be a string"),
        ("on_failure", "retry", "'retry'", "must be one of: keep, terminate, restart, restart_all"),
        ("user", {"name": "root"}, "{'name': 'root'}", "must be a dictionary that has only uid, gid"),
        ("user", 1000, "1000", "must be a dictionary that has only uid, gid"),
        ("network_encrypted", "on", "'on'", "must be true or false"),
        ("network_pool", "10.0.0.0/8", "'10.0.0.0/8'", "must be a list"),
        (
            "network_pool",
            ["10.0.0.0/28"],
            "'10.0.0.0/28'",
            POOL,
        ),
        ("network_pool", [], "[]", POOL),
        ("network_pool", ["8.8.0.0/16"], "'8.8.0.0/16'", POOL),
        ("network_pool", ["0.0.0.0/0"], "'0.0.0.0/0'", POOL),
        ("network_pool", ["127.0.0.0/8"], "'127.0.0.0/8'", POOL),
        ("network_pool", ["169.254.0.0/16"], "'169.254.0.0/16'", POOL),
        ("pids", 10, "10", "must be a whole number from 64 to 4194304"),
        ("log_size", "1k", "'1k'", "must be at least 64k"),
        ("log_files", 0, "0", "must be a whole number from 1 to 100"),
        ("disk", "1m", "'1m'", "must be 0 for no limit, or at least 16m"),
        ("port_range", "80-90", "'80-90'", "must be FIRST-LAST with ports from 1024 to 65535"),
    ],
)
def test_bad_input_is_refused_by_variable_value_and_rule(variable: str, value: object, shown: str, rule: str) -> None:
    assert refusal({variable: value}) == "session_%s: %s: %s." % (variable, shown, rule)


@pytest.mark.parametrize("image", ["a\x1b[31m", "a\x07", "imag\xe9", "a" * 600, "a b", "a\u202eb"])
def test_images_with_characters_that_no_reference_has_are_refused(image: str) -> None:
    assert "must be an image reference" in refusal({"image": image})


def test_an_environment_with_which_no_program_or_login_can_start_is_refused() -> None:
    assert check_environment("session_environment", {"A": "x" * ((1 << 17) - 3)})
    many = {"V%d" % number: "x" * 120000 for number in range(20)}
    quotes = {"A": '"' * (1 << 16)}
    for given in ({"A": "x" * ((1 << 17) - 2)}, {"A": "\xe9" * (1 << 16)}, quotes, many):
        assert "must have at most 131071 bytes in all, names included, and has " in refusal({"environment": given})


@pytest.mark.parametrize("name", [0o12345, 2024])
def test_a_name_that_yaml_reads_as_a_number_is_refused(name: object) -> None:
    assert "must be in quotes" in refusal({"name": name})


@pytest.mark.parametrize(
    "image",
    [
        "ubuntu",
        "a/b_c/d-e:1.0_x",
        "localhost:5000/a:latest",
        "[::1]:5000/a",
        "Registry.example.com/a/b",
        "a@sha256:" + "0" * 64,
        "registry.example.com/a:1@sha256:" + "f" * 64,
        "sha256:" + "0" * 64,
        "0123456789ab",
    ],
)
def test_a_reference_of_every_form_is_an_image(image: str) -> None:
    assert check_image("session_image", image) == image


@pytest.mark.parametrize(
    "value",
    [
        "/data:/d,cache:/c:ro",
        ["/data:/d", "cache:/c:ro"],
        ["/data:/d:rw", {"source": "cache", "target": "/c", "mode": "ro"}],
    ],
)
def test_a_mount_as_docker_writes_it_is_a_mount(value: object) -> None:
    mounts = check_request({**BASE, "mounts": value}).mounts
    assert [(one.source, one.target, one.type, one.mode) for one in mounts] == [
        ("/data", "/d", "bind", "rw"),
        ("cache", "/c", "volume", "ro"),
    ]


@pytest.mark.parametrize("value", ["node1, node2", "node1,node2", ["node1", "node2"]])
def test_names_may_be_a_string_with_commas(value: object) -> None:
    assert check_request({**BASE, "agents": value}).agents == ("node1", "node2")
    assert check_request({**BASE, "agents": "node1"}).agents == ("node1",)


@pytest.mark.parametrize(("check", "documented"), [(check_apps, suboptions.APP), (check_mounts, suboptions.MOUNT)])
def test_an_entry_may_have_what_the_reference_documents(check: Any, documented: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        check("session_x", [{}])
    assert set(re.findall("[a-z_]+", refused.value.parts[2].partition("with ")[2])) - {"and", "optionally"} == {
        *documented
    }
