# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of variables that the collection does not have."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.known_names import (
    check_known,
    nearest_names,
    of_collection,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import known_names_check

KNOWN = known_names_check.DECLARED | known_names_check.of_roles()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("session_mount", "session_mounts"),
        ("session_cluser_size", "session_cluster_size"),
        ("session_cpu", "session_cpus"),
        ("session_format", "sessions_format"),
        ("sessions_name", "session_name"),
        ("agent_resource_groups", "agent_resource_group"),
        ("check_formats", "check_format"),
        ("usage_formt", "usage_format"),
        ("policy_fromat", "policy_format"),
        ("timer_minute", "timer_minutes"),
        ("environmentss", "environments"),
        ("image_packges", "image_packages"),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_the_name_that_was_meant(typed: str, meant: str) -> None:
    message = f"{typed} \\(from -e\\): unknown; did you mean {meant}\\?"
    with pytest.raises(ComputeError, match=message):
        check_known({typed: ""}, {}, KNOWN)
    with pytest.raises(ComputeError, match=rf"from the inventory, host n1\): unknown; did you mean {meant}\?"):
        check_known({}, {typed: ["n1"]}, KNOWN)


def test_every_known_name_is_accepted_everywhere() -> None:
    check_known(dict.fromkeys(KNOWN, ""), {name: ["n1"] for name in KNOWN}, KNOWN)


def test_several_names_are_refused_at_once_with_their_hosts() -> None:
    hosts = [f"n{number}" for number in range(1, 101)]
    with pytest.raises(ComputeError) as caught:
        check_known({"session_sise": ""}, {"session_zzzzz": hosts}, KNOWN)
    assert caught.value.message.startswith("session_sise (from -e): unknown; did you mean ")
    where = (
        "session_zzzzz (from the inventory, host n1, n2, n3 and 97 others): unknown; no variable has a similar name."
    )
    assert where in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "agent_token",
        "agent_version",
        "agent_packages",
        "image_name",
        "image_tag",
        "policy_engine",
        "check_mk_agent_version",
        "timer_unit",
    ],
)
def test_an_inventory_may_have_variables_of_other_software(name: str) -> None:
    check_known({}, {name: ["n1"]}, KNOWN)
    with pytest.raises(ComputeError, match="unknown"):
        check_known({name: ""}, {}, KNOWN)


@pytest.mark.parametrize(
    ("typed", "offer"),
    [
        ("name", "did you mean session_name?"),
        ("cluster_size", "did you mean session_cluster_size?"),
        ("mounts", "did you mean session_mounts?"),
        ("cpus", "did you mean session_cpus?"),
        ("sesion_name", "did you mean session_name?"),
        ("session-name", "did you mean session_name?"),
        ("Session_memory", "did you mean session_memory?"),
        ("xyzzy", "no variable has a similar name."),
        ("__session_mount", "did you mean session_mounts?"),
    ],
)
def test_a_name_without_a_prefix_of_the_collection_is_refused_on_the_command_line(typed: str, offer: str) -> None:
    with pytest.raises(ComputeError) as caught:
        check_known({typed: "/home/alice/train.yml"}, {}, KNOWN)
    assert caught.value.message.startswith(f"{typed} (from /home/alice/train.yml): unknown; {offer}")


def test_variables_of_others_are_not_concerned() -> None:
    check_known(
        dict.fromkeys(("ansible_user", "awx_job_id", "tower_user_name"), ""),
        {"nginx_session_mount": ["n1"], "name": ["n1"], "sesion_name": ["n1"]},
        KNOWN,
    )


def test_beside_other_plays_a_name_is_refused_that_only_the_collection_can_mean() -> None:
    given = dict.fromkeys(("session_mount", "sesion_name", "cluster_size", "name", "my_session_mount"), "")
    assert sorted(of_collection(given, KNOWN)) == ["sesion_name", "session_mount"]


def test_only_the_nearest_names_are_offered() -> None:
    assert nearest_names("session_size", KNOWN) == ["session_cluster_size", "session_log_size"]
    assert nearest_names("session_xyzzy", KNOWN) == []
