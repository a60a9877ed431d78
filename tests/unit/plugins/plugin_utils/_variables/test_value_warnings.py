# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One warning names every value of its kind, wherever it stands."""

from __future__ import annotations

import doctest

from ansible_collections.cluster.compute.plugins.plugin_utils._variables import value_warnings
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.value_warnings import (
    unexpanded_paths,
    windows_scripts,
)

CRLF = "#!/bin/bash\r\ncd /tmp\r\nls\r\n"
LF = "#!/bin/bash\ncd /tmp\nls\n"


def test_one_warning_names_all_of_them() -> None:
    values = {
        "session_bootstrap": CRLF,
        "session_command": LF,
        "session_roles": [{"name": "sub", "command": CRLF}],
        "session_apps": ["lab", {"name": "web", "command": CRLF}],
    }
    message = "Windows line endings are removed before a script runs; save it with Unix line endings."
    names = "session_bootstrap, session_roles: sub: command, session_apps: web: command"
    assert windows_scripts(values) == f"{names}: {message}"


def test_a_warning_names_references_that_no_shell_replaces() -> None:
    values = {
        "session_environment": {"PATH": "$HOME/bin:$PATH", "PROMPT": "$PWD", "MANPATH": "/x:$MANPATH"},
        "session_roles": [{"name": "sub", "environment": {"PYTHONPATH": "~/lib:/a~/b"}}],
        "session_apps": ["lab", {"name": "web", "environment": {"LD_LIBRARY_PATH": "${CUDA}/lib:$$LD_LIBRARY_PATH"}}],
    }
    assert unexpanded_paths(values).startswith(
        "session_environment: PATH: $HOME, session_roles: sub: environment: PYTHONPATH: ~, session_apps: web: environment: "
        "LD_LIBRARY_PATH: ${CUDA}, session_apps: web: environment: LD_LIBRARY_PATH: $$LD_LIBRARY_PATH is passed on as it is: "
    )
    assert unexpanded_paths({"environment": {"PATH": "/x:$PATH"}, "roles": [], "apps": None}) == ""


def test_examples() -> None:
    assert doctest.testmod(value_warnings).failed == 0
