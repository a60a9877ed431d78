# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of apps, as PID 1 reads them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.archives import Entry
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.app_files import (
    app_entries,
    index_entry,
    index_lines,
    parse_index,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import (
    ImageContents,
    SshFiles,
    file_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.rootfs import Tree
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App, Plan, User
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment
from ansible_collections.cluster.compute.plugins.plugin_utils._client import app_urls
from ansible_collections.cluster.compute.plugins.plugin_utils._client.identity import make_bundle
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity

FOLDER = "/etc/cluster-compute/app/"
APPS = [
    {"name": "lab", "port": 8888, "command": "jupyter", "ready": "/api", "path": "/lab?token={token}"},
    {"name": "port-only", "port": 80},
    {"name": "board", "port": 6006, "command": "image", "environment": {"A": "it's $HOME"}, "public": True},
]
ASKED = request(cluster_size=2, apps=APPS)
IMAGE = {"Entrypoint": ["/bin/serve", "a b"], "Cmd": ["--now"], "WorkingDir": "/srv/it's"}


def entries(image: dict[str, Any] = IMAGE) -> dict[str, Entry]:
    tokens = {"lab": "token-of-lab", "board": "token-of-board"}
    return {entry.path: entry for entry in app_entries(ASKED.apps, tokens, User(uid=7, gid=8), image)}


def text(path: str) -> str:
    content = entries()[FOLDER + path].content
    assert content is not None
    return content.decode()


def test_only_the_user_reads_a_token() -> None:
    token = entries()[FOLDER + "lab/token"]
    assert (token.content, token.mode, token.uid, token.gid) == (b"token-of-lab", 0o600, 7, 8)
    assert not any(path.startswith(FOLDER + "port-only") for path in entries())
    others = [entry.content for path, entry in entries().items() if not path.endswith("/token")]
    assert not any(content and b"token-of" in content for content in others)


def test_a_shell_reads_what_was_asked_for() -> None:
    script = text("board/environment") + 'printf %s "$A"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "it's $HOME"
    assert text("lab/command") == "jupyter\n"
    assert text("board/command") == (
        "#!/opt/cluster-compute/bin/sh\ncd '/srv/it'\"'\"'s' 2>/dev/null\nexec /bin/serve 'a b' --now\n"
    )


def test_an_image_without_a_command_is_refused() -> None:
    with pytest.raises(StateError, match=r"^App board: the image of its container has neither ENTRYPOINT nor CMD"):
        entries({})


def test_the_list_of_apps() -> None:
    lines = index_lines(ASKED.apps)
    assert list(lines) == ["lab", "board"]
    assert lines["lab"].startswith("lab 8888 /api ")
    content = index_entry(lines).content
    assert content is not None
    assert content.endswith(b"end\n")
    assert parse_index(content.decode()) == lines
    changed = index_lines([replace(ASKED.apps[0], command="other")])
    assert changed["lab"] != lines["lab"]


def made() -> Plan:
    return plan(ASKED)


def test_main1_has_the_apps_and_a_sub_an_empty_list() -> None:
    """The image of a sub may have been made from a main1."""
    identity = Identity(b"x" * 32, made().session.id)
    found = []
    for container in made().containers:
        bundle = make_bundle(made(), identity, [container])
        again = SshFiles.from_parameter(bundle.to_parameter())
        contents = ImageContents(Tree(lambda _path: None), config=IMAGE)
        listed = file_entries(again, container, made().session, {"PATH": "/bin"}, contents)
        found.append({entry.path: entry.content for entry in listed})
    assert found[0][FOLDER + "lab/token"] == identity.app_token("lab").encode()
    assert found[1]["/etc/cluster-compute/apps"] == b""
    assert not any(path.startswith(FOLDER) for path in found[1])


def test_each_app_has_a_token_of_its_own() -> None:
    one, two = (Identity(b"x" * 32, session) for session in ("session-1", "session-2"))
    tokens = [one.app_token("lab"), one.app_token("board"), two.app_token("lab")]
    assert len(set(tokens)) == 3
    assert {len(token) for token in tokens} == {64}


def test_a_plan_holds_no_token() -> None:
    full = with_user_environment(made(), [{}] * 2)
    assert Plan.from_json(json.loads(json.dumps(full.to_json()))) == full
    identity = Identity(b"x" * 32, full.session.id)
    assert identity.app_token("lab") not in json.dumps(full.to_json())


def test_urls_hold_the_tokens() -> None:
    identity = Identity(b"x" * 32, made().session.id)
    ports = made().main.ports
    published = (
        *ports,
        replace(ports[0], name="lab", host_port=30001),
        replace(ports[0], name="board", host_port=30002),
    )
    with_ports = replace(made(), containers=(replace(made().main, ports=published), *made().containers[1:]))
    lab, board = (identity.app_token(name) for name in ("lab", "board"))
    launched = "lab http://127.0.0.1:30001/lab?token=%s\nboard http://192.0.2.7:30002/?token=%s\n" % (lab, board)
    assert app_urls.urls_text(with_ports, identity, "192.0.2.7") == launched
    added = "added http://127.0.0.1:30003/?token=0f\n"
    assert app_urls.urls_text(with_ports, identity, "192.0.2.7", [added]) == launched + added
    assert App("lab", 1).access("2001:db8::1", 2, "abc") == "http://[2001:db8::1]:2/ abc"
