# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that people write on Windows, and variables that extend others."""

from __future__ import annotations

from samples import request

from ansible_collections.cluster.compute.plugins.module_utils._core.model import App
from ansible_collections.cluster.compute.plugins.module_utils._core.value_rules import windows_scripts
from ansible_collections.cluster.compute.plugins.plugin_utils._user_templates import _of_parts

CRLF = "#!/bin/bash\r\ncd /tmp\r\nls\r\n"
LF = "#!/bin/bash\ncd /tmp\nls\n"


def test_scripts_of_windows_run_with_the_line_ends_of_linux() -> None:
    asked = request(
        bootstrap="\ufeff" + CRLF,
        command=CRLF,
        apps=[{"name": "web", "port": 8080, "command": CRLF}],
        roles=[{"name": "sub", "size": 1, "command": "cd /tmp\r\nls", "ready": "test -e x\r\n"}],
    )
    (app,) = asked.apps
    assert isinstance(app, App)
    assert (asked.bootstrap, asked.command, app.command) == (LF, LF, LF)
    assert [(role.command, role.ready) for role in asked.roles if role.name == "sub"] == [
        ("cd /tmp\nls", "test -e x\n")
    ]


def test_a_script_with_other_lines_stays_as_it_is() -> None:
    mixed = "printf 'a\r'\nprintf b\r\n"
    assert request(command=mixed).command == mixed
    assert windows_scripts({"session_command": mixed}) == ""


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


def test_a_variable_of_a_role_extends_the_one_of_the_session() -> None:
    asked = request(
        environment={"PATH": "/session:$PATH"}, roles=[{"name": "sub", "environment": {"PATH": "/role:$PATH"}}]
    )
    texts = {name: compiled["PATH"][0] for name, compiled in _of_parts(asked).items()}
    assert texts == {"main": "/session:$PATH", "sub": "/role:/session:$PATH"}
