# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session from a devcontainer.json: its variables, its command, its port and its mount."""

from __future__ import annotations

import json
from pathlib import Path

from app_pages import get
from controller import Controller, Session

FILE = """// The project is mounted below.
{
    "image": "reference",
    "features": {}, /* ignored */
    "remoteUser": "vscode",
    "containerEnv": {"GREETING": "hello from ${localWorkspaceFolderBasename}", "SHOWN": "by the file"},
    "postCreateCommand": {"where": "pwd >$HOME/where", "what": ["cp", "--", "page", "/tmp/page"],},
    "forwardPorts": [8000],
    "mounts": ["source=${localWorkspaceFolder},target=${containerWorkspaceFolder},type=bind,readonly"],
}
"""


def test_a_session_from_a_devcontainer_file(controller: Controller, tmp_path: Path) -> None:
    project = tmp_path / "site"
    (project / ".devcontainer").mkdir(parents=True)
    (project / "page").write_text("the page of the project")
    (project / ".devcontainer" / "devcontainer.json").write_text(FILE)
    asked = project / "session.yml"
    asked.write_text(
        "session_devcontainer: .devcontainer/devcontainer.json\nsession_environment: {SHOWN: by the session}\n"
    )
    launched = controller.launch("site", "-e", f"@{asked}").check()
    ignored = ".devcontainer/devcontainer.json: a session does not support these keys, and ignores them: features, remoteUser."
    assert launched.text.count(ignored) == 1
    site = Session(controller, "site")
    assert site.say("main1", 'echo "$GREETING; $SHOWN"') == "hello from site; by the session"
    assert site.say("main1", "cat where /tmp/page") == "/workspaces/site\nthe page of the project"
    site.say("main1", "cd /tmp; setsid python3 -m http.server 8000 >server.log 2>&1 </dev/null &")
    _ssh, app = json.loads((site.folder / "session.json").read_text())["apps"]
    assert app["name"] == "port-8000"
    assert get(f"http://127.0.0.1:{app['port']}/page") == "the page of the project"
    assert controller.launch("site", "-e", f"@{asked}").check().changed == 0
    controller.terminate("site").check()


def test_a_file_without_an_image_is_refused_before_anything_is_touched(controller: Controller, tmp_path: Path) -> None:
    (tmp_path / "devcontainer.json").write_text('{"build": {"dockerfile": "Dockerfile"}}')
    refused = controller.launch("site", session_devcontainer=str(tmp_path / "devcontainer.json"))
    assert refused.code == 2
    assert "session_devcontainer: 'build': the session needs an image: build it, push it" in refused.message
