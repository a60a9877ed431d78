# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments by name, and the apps that they have."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    ImageState,
    Runtime,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.catalogue import (
    APPS,
    BASES,
    SHIPPED,
    check_environments,
    lacks,
    list_environments,
    to_build,
    with_environment,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request

OWN = {
    "r": {
        "versions": {"4.4": "registry.example.org/r:4.4", "4.3": "registry.example.org/r:4.3"},
        "apps": ["terminal", {"name": "rstudio", "port": 8787, "command": "rserver"}],
        "command": "Rscript main.R",
        "environment": {"R_LIBS": "/r", "LANG": "C"},
    }
}


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("lab", "cluster-compute/lab:1.0"),
        ("lab:1.0", "cluster-compute/lab:1.0"),
        ("r", "registry.example.org/r:4.4"),
        ("r:4.3", "registry.example.org/r:4.3"),
        ("reference", "cluster-compute/reference:1"),
        ("quay.io/jupyter/lab:1.0", "quay.io/jupyter/lab:1.0"),
        ("labs", "labs"),
        ("docker.io/library/lab:9", "docker.io/library/lab:9"),
    ],
)
def test_a_name_stands_for_an_image(given: str, image: str) -> None:
    table = check_environments("session_environments", OWN)
    assert with_environment({"session_image": given}, table)["session_image"] == image


def test_a_version_of_the_site_is_beside_the_one_of_the_collection() -> None:
    own = {"pytorch": {"versions": {"2.12.0": "cluster-compute/pytorch:2.12.0"}}}
    table = check_environments("session_environments", own)
    for given, version in (("pytorch", "2.12.0"), ("pytorch:2.12.0", "2.12.0"), ("pytorch:2.13.0", "2.13.0")):
        found = with_environment({"session_image": given, "session_apps": ["terminal"]}, table)
        assert found["session_image"] == f"cluster-compute/pytorch:{version}"
        assert found["session_apps"] == [APPS["terminal"]]
    assert table["pytorch"].description == SHIPPED["pytorch"].description
    both = {"pytorch": {"versions": {"2.13.0": "mirror/pytorch:1", "2.12.0": "own"}, "apps": ["jupyterlab"]}}
    table = check_environments("session_environments", both)
    assert table["pytorch"].versions == both["pytorch"]["versions"]
    assert table["pytorch"].apps == {"jupyterlab": APPS["jupyterlab"]}


def test_defaults_of_an_environment_give_way_to_variables() -> None:
    table = check_environments("session_environments", OWN)
    bare = with_environment({"session_image": "r"}, table)
    assert (bare["session_command"], bare["session_environment"]["LANG"]) == ("Rscript main.R", "C")
    given = {"session_image": "r", "session_command": "true", "session_environment": {"LANG": "en"}}
    found = with_environment(given, table)
    assert found["session_command"] == "true"
    assert found["session_environment"] == {"R_LIBS": "/r", "LANG": "en"}
    assert with_environment({}, table) == {}


@pytest.mark.parametrize(
    "given",
    [["jupyterlab", "terminal"], "[jupyterlab,terminal]", "jupyterlab, terminal", [{"name": "jupyterlab"}, "terminal"]],
)
def test_apps_by_name(given: Any) -> None:
    found = with_environment({"session_image": "lab", "session_apps": given}, SHIPPED)["session_apps"]
    assert found == [APPS["jupyterlab"], APPS["terminal"]]
    request = check_request({"name": "train", "owner": "alice", "apps": found})
    assert [(app.name, app.port, app.ready) for app in request.apps] == [
        ("jupyterlab", 8888, "/api"),
        ("terminal", 7681, "/api"),
    ]


def test_a_part_of_an_app_is_changed() -> None:
    values = {"session_image": "lab", "session_apps": [{"name": "jupyterlab", "preferred_port": 8888, "public": True}]}
    (app,) = with_environment(values, SHIPPED)["session_apps"]
    assert app == {**APPS["jupyterlab"], "preferred_port": 8888, "public": True}
    own = {"name": "jupyterlab", "port": 9000, "command": "serve"}
    assert with_environment({"session_apps": [own]}, SHIPPED)["session_apps"] == [own]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"session_image": "lab:9"},
            "session_image: 'lab:9': the environment lab has no such version, only 1.0; write docker.io/library/lab:9 for an "
            "image of that name.",
        ),
        (
            {"session_image": "lab", "session_apps": ["rstudio"]},
            "session_apps: 'rstudio': the environment lab has no app of this name, only jupyterlab, terminal, tensorboard; "
            "write a dictionary with name, port and command.",
        ),
        (
            {"session_image": "lab", "session_apps": ["code"]},
            "session_apps: 'code': the environment lab has no app of this name, only jupyterlab, terminal, tensorboard; "
            "set session_image to code, which has it, or write a dictionary with name, port and command.",
        ),
        (
            {"session_apps": ["terminal"]},
            "session_apps: 'terminal': the environment reference has no app of this name, only none; set session_image to lab or "
            "pytorch or tensorflow or code, which has it, or write a dictionary with name, port and command.",
        ),
    ],
)
def test_what_an_environment_does_not_have_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        with_environment(values, SHIPPED)
    assert refused.value.message == message


def test_an_image_that_is_no_environment_may_run_known_apps() -> None:
    values = {"session_image": "quay.io/jupyter/base", "session_apps": ["jupyterlab"]}
    assert with_environment(values, SHIPPED)["session_apps"] == [APPS["jupyterlab"]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "session_environments: []: must be a dictionary of environments by name."),
        ({"R": {"versions": {"1": "r"}}}, "session_environments.R: 'R': must have lower-case letters"),
        ({"r": {}}, "session_environments.r: {}: must be a dictionary with versions, and optionally description"),
        ({"r": {"versions": {}}}, "session_environments.r.versions: {}: must be a dictionary of images by version."),
        ({"r": {"versions": {1.0: "r"}}}, "session_environments.r.versions: 1.0: must be a version in quotes"),
        ({"r": {"versions": {"1": "R R"}}}, "session_environments.r.versions.1: 'R R': must be an image reference"),
        ({"r": {"versions": {"1": "r"}, "apps": ["x"]}}, "session_environments.r.apps: 'x': the collection has no app"),
        ({"r": {"versions": {"1": "r"}, "command": 1}}, "session_environments.r.command: 1: must be a string."),
    ],
)
def test_a_wrong_table_is_refused(table: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_environments("session_environments", table)
    assert refused.value.message.startswith(message)


def test_the_list_has_every_version() -> None:
    rows = {(row.name, row.version): row for row in list_environments(check_environments("session_environments", OWN))}
    assert rows["r", "4.3"].image == "registry.example.org/r:4.3"
    assert rows["r", "4.4"].apps == ("terminal", "rstudio")
    assert {name for name, _version in rows} == {*SHIPPED, "r"}


def test_what_is_built() -> None:
    assert [build.name for build in to_build("[lab]")] == ["lab"]
    assert to_build(["lab"])[0].base == "cluster-compute/reference:1"
    for names in (["x"], [], "reference"):
        with pytest.raises(InputError, match="environments"):
            to_build(names)
    assert set(BASES) | {"reference"} == set(SHIPPED)


def host(reference: str, *, present: bool, runtime: bool = True) -> AgentReport:
    return AgentReport("a", image=ImageState(reference, present), runtime=Runtime(present=runtime))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (host("debian:12", present=True), []),
        (host("debian:12", present=False), []),
        (host("debian:12", present=True, runtime=False), ["agent"]),
        (host("cluster-compute/reference:1", present=False), ["agent"]),
        (host("cluster-compute/lab:1.0", present=True), []),
        (host("cluster-compute/lab:1.0", present=False), ["environment"]),
        (host("cluster-compute/lab:1.0", present=False, runtime=False), ["agent", "environment"]),
        (AgentReport("a", reachable=False), ["agent"]),
    ],
)
def test_what_a_host_lacks(found: AgentReport, wanted: list[str]) -> None:
    assert lacks(found) == wanted
