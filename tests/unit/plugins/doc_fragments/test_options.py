# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of options, from the declaration of variables."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.cluster.compute.plugins.doc_fragments.options import ModuleDocFragment
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.options import OPTIONS


def documented(action: str) -> Any:
    """The options, as Ansible reads a fragment."""
    return yaml.safe_load(getattr(ModuleDocFragment, action.upper()))["options"]


@pytest.mark.parametrize("action", OPTIONS)
def test_the_fragment_documents_each_option_of_an_action(action: str) -> None:
    options = documented(action)
    assert set(options) == set(OPTIONS[action].variables())
    assert all(option["description"] and "no_log" not in option for option in options.values())


def test_a_description_names_options_in_the_place_of_variables() -> None:
    assert "O(direction=from)" in documented("session_copy")["target"]["description"][0]


def test_parts_of_an_option_are_suboptions() -> None:
    assert "description" in documented("session")["mounts"]["suboptions"]["source"]


def test_an_option_that_ends_a_session_is_required_for_that() -> None:
    assert "Required with O(state=absent)." in documented("session")["name"]["description"]


def test_a_default_of_no_is_a_default() -> None:
    assert documented("session")["no_new_privileges"]["default"] is False
