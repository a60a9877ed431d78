# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of apps on a scripted play."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from conducted import conducted
from samples import plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import App
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.session_json import (
    SessionApp,
    SessionDocument,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import DOCUMENT, Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._session.apps import change_apps
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.apps_change import AppsChange


def test_a_change_keeps_the_apps_that_another_command_adds_meanwhile(tmp_path: Path) -> None:
    made = plan(request(), "a")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    artifacts.identity(made.session.id, create=True)
    document = SessionDocument.of_plan(made, running_row(made), [])
    artifacts.write_json(DOCUMENT, document.to_json())
    lab, board = (App(name, port, command="serve") for name, port in (("lab", 8888), ("board", 6006)))

    def other_command(_host: str, _args: Json) -> Json:
        added = SessionApp.tunneled(made.session.id, board, artifacts.folder)
        artifacts.write_json(DOCUMENT, replace(document, apps=(*document.apps, added)).to_json())
        return {"changed": True, "apps": [], "relays": []}

    play = conducted({"apps.change": other_command}, "a", session_artifacts=str(tmp_path))
    change_apps(play, made.session.name, AppsChange(made.session.id, 5, [lab]))
    names = [one["name"] for one in json.loads(artifacts.read(DOCUMENT) or b"")["apps"]]
    assert names[-2:] == ["board", "lab"]
