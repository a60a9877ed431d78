# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors are sentences that a user can read, whatever was given."""

from __future__ import annotations

import sys

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError, LibraryError
from ansible_collections.cluster.compute.plugins.module_utils._core.exits import describe_container_exit, limit_reached


def test_an_error_of_input_names_variable_value_and_rule() -> None:
    error = InputError("session_cpus", "many", "must be a number")
    assert (error.message, error.where) == ("session_cpus: 'many': must be a number.", "session_cpus")


def test_a_name_that_the_user_chose_is_shortened_like_a_value() -> None:
    error = InputError("session_presets." + "1" * 5000, "2" * 5000, "must be a dictionary")
    assert error.message == "session_presets.%s…: '%s…: must be a dictionary." % ("1" * 103, "2" * 78)


def test_a_missing_library_names_the_python_and_the_command() -> None:
    message = LibraryError("docker").message
    assert message.startswith(
        f"The Python {sys.executable} lacks the library docker; run {sys.executable} -m pip install docker, or "
    )


def test_a_container_without_its_secrets_says_so() -> None:
    container = {"hostname": "sub1", "agent": "node1", "state": "exited", "exit_code": 82}
    text = "sub1 on node1 ended: no secrets came after its start; run cluster_session.yml again to repair the session"
    assert describe_container_exit(container) == text
    assert limit_reached([{**container, "hostname": "main1"}]) == ""
