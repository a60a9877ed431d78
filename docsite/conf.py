# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Sphinx for the documentation site. `make docs-site` builds it."""

from __future__ import annotations

import zlib
from pathlib import Path

# The targets in Ansible's documentation that the reference links to. Sphinx would download the list of all targets; with this
# list a build needs no network, and a reference to a target that is missing here is a warning.
ANSIBLE = "https://docs.ansible.com/ansible/latest/"
TARGETS = {
    "std:label": {
        "action_plugins": "plugins/action.html#action-plugins",
        "ansible_configuration_settings": "reference_appendices/config.html#ansible-configuration-settings",
        "callback_plugins": "plugins/callback.html#callback-plugins",
        "common_return_values": "reference_appendices/common_return_values.html#common-return-values",
        **{
            f"ansible_collections.ansible.builtin.{name}": f"collections/ansible/builtin/{name}.html"
            for name in ("command_module", "debug_module", "default_callback", "find_module")
        },
    },
    "std:envvar": {
        "ANSIBLE_STDOUT_CALLBACK": "reference_appendices/config.html#envvar-ANSIBLE_STDOUT_CALLBACK",
    },
}


def write_inventory(path: Path) -> None:
    """Write the targets in the format of Sphinx's file objects.inv."""
    lines = [f"{name} {kind} 1 {address} -\n" for kind, found in TARGETS.items() for name, address in found.items()]
    head = "# Sphinx inventory version 2\n# Project: Ansible\n# Version: latest\n# The remainder is compressed using zlib.\n"
    path.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))


project = "cluster.compute"
author = "the cluster.compute authors"
project_copyright = "the cluster.compute authors"
title = html_title = "cluster.compute documentation"
html_short_title = "cluster.compute"

extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "any"
highlight_language = "YAML+Jinja"
# The anchors that GitHub gives to headings, which the pages link to.
myst_heading_anchors = 4

html_theme = "sphinx_ansible_theme"
html_show_sphinx = False
html_use_smartypants = False
html_theme_options = {"vcs_pageview_mode": "edit", "documentation_home_url": "index.html"}
html_context = {"display_github": False, "show_sphinx": False}

write_inventory(Path(__file__).with_name("ansible.inv"))
intersphinx_mapping = {"ansible": (ANSIBLE, "ansible.inv")}
