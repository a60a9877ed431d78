# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions take the options that their modules document."""

from __future__ import annotations

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cluster.compute.plugins.modules import agent_step
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.documented import documented


def test_types_choices_and_defaults_are_those_of_the_documentation() -> None:
    spec = documented("image")
    assert spec["pull"] == {"type": "str", "choices": ["missing", "always", "never"], "default": "missing"}
    assert spec["name"] == {"type": "str", "required": True}


def test_options_of_fragments_and_of_their_parts_belong_to_the_module() -> None:
    assert documented("network")["timeout"] == {"type": "int", "default": 60}
    assert documented("containers")["artifacts"] == {"type": "path"}


def test_parts_of_an_option_are_checked() -> None:
    checked = ArgumentSpecValidator(documented("ssh")).validate({"containers": [{"host": "a"}]})
    assert checked.error_messages == ["missing required arguments: name found in containers"]
    assert documented("containers")["logs"]["options"]["total"] == {"type": "int", "default": 64 << 20}


def test_the_documentation_of_a_step_has_the_options_of_its_module() -> None:
    spec = agent_step.ARGUMENT_SPEC
    own = {name: {key: value for key, value in one.items() if key != "no_log"} for name, one in spec.items()}
    assert documented("agent_step") == own
