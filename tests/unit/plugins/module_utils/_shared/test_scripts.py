# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that people write on Windows, and variables that extend others."""

from __future__ import annotations

import subprocess

import pytest
from samples import request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.app_files import _exports
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import expanded, merged_environment
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.templates import _of_parts
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.value_warnings import windows_scripts

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
    assert windows_scripts({"session_command": mixed}) == (
        "session_command: only some lines end with CR, which a shell takes as a part of their last word; remove it with tr -d '\\r'."
    )


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("#!/bin/bash\rcd /tmp\rls\r", LF),
        ("ls\r", "ls\n"),
        ("cd /tmp\r\nls\r", "cd /tmp\nls"),
        ("printf 'a\rb'", "printf 'a\rb'"),
        ("printf 'a\rb'\n", "printf 'a\rb'\n"),
        ("\ufeff#!/bin/bash\ncd /tmp\nls\n", LF),
    ],
)
def test_other_line_ends_and_marks(script: str, kept: str) -> None:
    assert request(bootstrap=script).bootstrap == kept
    assert bool(windows_scripts({"session_bootstrap": script})) == (kept != script)


def test_a_variable_of_a_role_extends_the_one_of_the_session() -> None:
    asked = request(
        environment={"PATH": "/session:$PATH"}, roles=[{"name": "sub", "environment": {"PATH": "/role:$PATH"}}]
    )
    texts = {name: compiled["PATH"][0] for name, compiled in _of_parts(asked).items()}
    assert texts == {"main": "/session:$PATH", "sub": "/role:/session:$PATH"}


@pytest.mark.parametrize(
    ("name", "text", "with_value", "without"),
    [
        ("PATH", "/x:$PATH", "/x:/bin:/sbin", "/x"),
        ("PATH", "/x:${PATH:-}", "/x:/bin:/sbin", "/x"),
        ("LD_LIBRARY_PATH", "$LD_LIBRARY_PATH:/x", "/bin:/sbin:/x", "/x"),
        ("LD_LIBRARY_PATH", "/x${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", "/x:/bin:/sbin", "/x"),
        ("LD_LIBRARY_PATH", "${LD_LIBRARY_PATH:+${LD_LIBRARY_PATH}:}/x", "/bin:/sbin:/x", "/x"),
        ("MANPATH", "/x:$MANPATH", "/x:/bin:/sbin", "/x:"),
        ("PATH", "/x:$$PATH", "/x:$$PATH", "/x:$$PATH"),
        ("PATH", r"/x:\$PATH", r"/x:\$PATH", r"/x:\$PATH"),
        ("PATH", "/x:$PATH_OF_X", "/x:$PATH_OF_X", "/x:$PATH_OF_X"),
    ],
)
def test_a_variable_extends_what_lies_below_it(name: str, text: str, with_value: str, without: str) -> None:
    value = "/bin:/sbin"
    assert (expanded(name, text, value), expanded(name, text, "")) == (with_value, without)
    assert merged_environment({name: value}, {name: text}) == {name: with_value}
    for given, wanted in ((value, with_value), ("", without)):
        script = _exports({name: text}) + f'echo "${name}"'
        done = subprocess.run(["/bin/sh", "-c", script], env={name: given}, check=False, capture_output=True, text=True)
        assert done.stdout == wanted + "\n"
