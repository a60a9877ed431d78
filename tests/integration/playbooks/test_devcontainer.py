# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session from a devcontainer.json: its variables, its command, its port and its mount."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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


# With the keys, and the forms of their values, of the files that these projects publish.
PUBLISHED = {
    "python/cpython": """{
        "image": "registry.example.org/python/devcontainer:2024.09.25",
        "onCreateCommand": [
            // common tools
            "dnf", "install", "-y", "which"
        ],
        "updateContentCommand": {"python": "./configure && make -s -j `nproc`", "docs": ["make", "--directory", "Doc"]},
        "postCreateCommand": {
            // a name has a space and a colon
            "umask fix: workspace": ["cp", "--", "tools/page", "/tmp/a page"],
            "umask fix: /tmp": "chmod 600 '/tmp/a page'"
        },
        "customizations": {"vscode": {"extensions": [/* C */ "ms-vscode.cpptools"], "settings": {"[restructuredtext]": {}}}}
    }""",
    "microsoft/vscode": """{
\t"name": "Code - OSS",
\t"build": {"dockerfile": "Dockerfile"},
\t"features": {"ghcr.io/devcontainers/features/desktop-lite:1": {}},
\t"containerEnv": {
\t\t"DISPLAY": "" // a script sets it
\t},
\t"overrideCommand": false,
\t"privileged": true,
\t"mounts": [{"source": "cluster-compute-test-vscode", "target": "/vscode-dev", "type": "volume"}],
\t"postCreateCommand": "./.devcontainer/post-create.sh",
\t"forwardPorts": [6080, 5901],
\t"portsAttributes": {"6080": {"label": "VNC web client (noVNC)", "onAutoForward": "silent"}},
\t"hostRequirements": {"memory": "9gb"}
}
""",
    "openai/codex": """{
        "$schema": "https://raw.githubusercontent.com/devcontainers/spec/main/schemas/devContainer.schema.json",
        "build": {"dockerfile": "Dockerfile", "context": "..", "args": {"TZ": "${localEnv:TZ:UTC}"}},
        "runArgs": ["--cap-add=NET_ADMIN"],
        "remoteUser": "vscode",
        "workspaceMount": "source=${localWorkspaceFolder},target=/workspace,type=bind,consistency=delegated",
        "workspaceFolder": "/workspace",
        "mounts": [
            "source=cluster-compute-test-history-${devcontainerId},target=/commandhistory,type=volume",
            "source=${localEnv:HOME}/.gitconfig,target=/home/vscode/.gitconfig,type=bind,readonly"
        ],
        "containerEnv": {"ZONE": "${localEnv:NO_SUCH_NAME:UTC}", "ALLOWED": "api.example.org github.com", "TARGET": "/workspace/target"},
        "remoteEnv": {"KEY": "${localEnv:KEY}"},
        "postCreateCommand": "cat /workspace/tools/page >/tmp/done",
        "postStartCommand": "bash /opt/post_start.sh",
    }""",
}
IGNORED = {
    "python/cpython": "onCreateCommand, updateContentCommand, customizations",
    "microsoft/vscode": "name, build, features, overrideCommand, privileged, portsAttributes, hostRequirements",
    "openai/codex": "build, runArgs, remoteUser, workspaceMount, remoteEnv, postStartCommand",
}
CHECKS = {
    "python/cpython": ("stat -c %a '/tmp/a page'; cat '/tmp/a page'", "600\nthe page of the project"),
    "microsoft/vscode": (
        'echo "<${DISPLAY-unset}>"; cat ran; ls -d /vscode-dev',
        "<>\n/workspaces/vscode\n/vscode-dev",
    ),
    "openai/codex": (
        "echo $ZONE $ALLOWED $TARGET; cat /tmp/done /home/vscode/.gitconfig; ls -d /commandhistory",
        "UTC api.example.org github.com /workspace/target\nthe page of the project\n[user]\n/commandhistory",
    ),
}


@pytest.fixture
def pulled(controller: Controller) -> Iterator[None]:
    """The image that a file names, as if the agent had pulled it: an image of the lab stands for it. Volumes of the files go."""
    image = "registry.example.org/python/devcontainer:2024.09.25"
    controller.client.tag("cluster-compute/reference:1", *image.split(":"))
    yield
    controller.client.remove_image(image)
    for volume in controller.client.volumes(filters={"name": "cluster-compute-test-"})["Volumes"] or ():
        if volume["Name"].startswith(("cluster-compute-test-vscode", "cluster-compute-test-history-")):
            controller.client.remove_volume(volume["Name"])


@pytest.mark.parametrize("published", PUBLISHED)
def test_published_files(controller: Controller, pulled: None, tmp_path: Path, published: str) -> None:
    name = published.partition("/")[2]
    project, asked = tmp_path / name, tmp_path / "session.yml"
    for path, text in (
        ("tools/page", "the page of the project\n"),
        (".devcontainer/post-create.sh", "#!/bin/sh\npwd >$HOME/ran\n"),
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
        (project / path).chmod(0o755)
    (project / ".devcontainer/devcontainer.json").write_text(PUBLISHED[published])
    (controller.home / ".gitconfig").write_text("[user]\n")
    folder = "/workspace" if name == "codex" else f"/workspaces/{name}"
    given: dict[str, Any] = {"session_devcontainer": f"{name}/.devcontainer/devcontainer.json"}
    given |= {"session_mounts": [f"{project}:{folder}:ro"]}
    given |= {} if name == "cpython" else {"session_image": "reference"}
    asked.write_text(json.dumps(given))
    launched = controller.launch(name, "-e", f"@{asked}").check()
    ignored = f"a session does not support these keys, and ignores them: {IGNORED[published]}."
    assert ignored in " ".join(launched.text.split())
    made = Session(controller, name)
    script, output = CHECKS[published]
    assert made.say("main1", script) == output
    ports = [app["name"] for app in made.document["apps"][1:]]
    assert ports == (["port-6080", "port-5901"] if name == "vscode" else [])
    assert controller.launch(name, "-e", f"@{asked}").check().changed == 0
    controller.terminate(name).check()


def test_a_file_without_an_image_is_refused_before_anything_is_touched(controller: Controller, tmp_path: Path) -> None:
    (tmp_path / "devcontainer.json").write_text('{"build": {"dockerfile": "Dockerfile"}}')
    refused = controller.launch("site", session_devcontainer=str(tmp_path / "devcontainer.json"))
    assert refused.code == 2
    assert "session_devcontainer: 'build': the session needs an image: build it, push it" in refused.message
