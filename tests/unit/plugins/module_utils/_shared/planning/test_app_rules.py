# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule of an app: its normal form, and what is refused."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.app_rules import check_apps
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request

WEB = {"name": "web", "port": 80}
SERVED = {**WEB, "command": "serve"}


@pytest.mark.parametrize(
    ("given", "app"),
    [
        (WEB, App("web", 80)),
        (SERVED, App("web", 80, command="serve", ready="80", path="/?token={token}")),
        ({**SERVED, "ready": "/api?x=1"}, App("web", 80, command="serve", ready="/api?x=1", path="/?token={token}")),
        ({**SERVED, "ready": 81, "path": "/"}, App("web", 80, command="serve", ready="81")),
        (
            {**SERVED, "environment": {"A": 1}, "public": "yes"},
            App("web", 80, 0, True, "serve", "80", {"A": "1"}, "/?token={token}"),
        ),
    ],
)
def test_the_normal_form(given: dict[str, Any], app: App) -> None:
    assert check_apps("session_apps", [given]) == (app,)
    assert App.from_json(asdict(app)) == app


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("jupyterlab", "session_apps: 'jupyterlab': must be a dictionary with name and port, and optionally"),
        ({**SERVED, "command": ["serve"]}, "session_apps: command: ['serve']: must be a string."),
        ({**SERVED, "command": "x" * 60001}, "session_apps: command: "),
        ({**SERVED, "ready": 0.5}, "session_apps: ready: 0.5: must be a whole number from 1 to 65535."),
        ({**SERVED, "ready": "/a b"}, "session_apps: ready: '/a b': must be a path of a URL that starts with '/'."),
        ({**SERVED, "ready": "/a\r\nHost: x"}, "session_apps: ready: "),
        ({**SERVED, "path": "lab"}, "session_apps: path: 'lab': must be a path of a URL"),
        ({**WEB, "ready": "/"}, "session_apps: ready: '/': needs a command."),
        ({**WEB, "environment": {"A": "1"}}, "session_apps: environment: "),
        ({**SERVED, "environment": {"A": "1\n2"}}, "session_apps: environment: A: "),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_apps("session_apps", [given])
    assert refused.value.message.startswith(message)


def test_every_setting_of_an_app_is_in_the_digest() -> None:
    base = {"name": "train", "owner": "alice"}
    digests = {check_request({**base, "apps": [app]}).digest for app in (WEB, SERVED, {**SERVED, "ready": "/x"})}
    assert len(digests) == 3
