# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of actions are variables without their prefix."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.options import OPTIONS


def test_every_variable_of_a_request_is_an_option() -> None:
    session = OPTIONS["session"].variables()
    assert {"name", "cluster_size", "image", "cpus", "memory", "apps", "mounts", "secrets", "many", "state"} <= set(
        session
    )
    assert OPTIONS["session_exec"].variables()["command"].full_name == "session_exec_command"
    assert OPTIONS["session_apps"].variables()["timeout"].full_name == "session_apps_timeout"


def test_what_only_the_role_does_is_no_option() -> None:
    assert not {"provision", "preflight", "preflight_age", "ignored_variables"} & set(OPTIONS["session"].variables())


def test_a_value_that_an_action_needs_is_required_and_has_no_default() -> None:
    def documented(action: str, option: str) -> tuple[bool, object]:
        found = OPTIONS[action].documentation(OPTIONS[action].variables()[option])
        return found["required"], found["default"]

    assert documented("session_exec", "command") == documented("session_copy", "source") == (True, None)
    # A launch chooses a name.
    assert documented("session", "name") == (False, None)


def test_options_replace_their_variables_and_empty_ones_do_not() -> None:
    given = OPTIONS["session_exec"].given({"command": "date", "timeout": 5, "containers": None, "output": ""}, {}.get)
    assert given == {"session_exec_command": "date", "session_exec_timeout": 5}


def test_an_error_is_about_the_variable_that_an_option_repeats() -> None:
    variables = {"session_name": "train", "state": "absent"}
    given = OPTIONS["session"].given({"name": "train", "state": "absent", "count": 2}, variables.get)
    assert given == {"state": "absent", "session_count": 2}


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(
        InputError, match=r"clustersize: 3: is not an option, but cluster_size is; the options are .*, cluster_size, "
    ):
        OPTIONS["session"].given({"clustersize": 3}, {}.get)


def test_an_error_names_the_option_that_gave_the_value() -> None:
    error = InputError("session_apps: port", 22, "must not be 22")
    session = OPTIONS["session"]
    assert session.by_option({"session_apps": []}, error).failure.to_json() == {
        "code": "input",
        "message": "apps: port: 22: must not be 22.",
        "where": "apps: port",
    }
    assert session.by_option({"session_cpus": 1}, error) is error
    other = StateError("session_apps is not ready", "session_apps")
    assert session.by_option({"session_apps": []}, other) is other
