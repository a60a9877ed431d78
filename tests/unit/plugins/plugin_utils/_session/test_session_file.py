# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stored requests: their check, their session file, and a launch like another session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from conducted import conducted
from samples import SESSION, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import login
from ansible_collections.cluster.compute.plugins.plugin_utils._session.session_file import (
    checked_sessions,
    like,
    session_file,
)

COMMAND = 'echo \'{{ lookup("pipe", "id") }}\'\npython train.py\n'


def stored(document: Json | None) -> SessionView:
    """A session of the store with this request."""
    return SessionView(SESSION, "train", "alice", "PENDING", request=document)


def answered(hidden: tuple[str, ...] = (), **variables: Any) -> Json:
    made = request(owner=login(), command=COMMAND, **variables).to_json()
    shown = {name: value for name, value in made.items() if name not in hidden}
    return {"id": SESSION, "state": "TERMINATED", "on_failure": "keep", "request": shown}


def test_a_session_file_is_read_by_ansible_as_it_was_written(tmp_path: Path) -> None:
    play = conducted({"sessions.request": answered(environment={"GREETING": "grüße: {% raw %}"}, memory="2g")})
    path = tmp_path / "train.yml"
    path.write_text(session_file(play, "train", ""))
    read = DataLoader().load_from_file(str(path))
    assert read == {
        "session_name": "train",
        "session_image": "reference",
        "session_memory": "2g",
        "session_command": COMMAND,
        "session_environment": {"GREETING": "grüße: {% raw %}"},
    }
    # Ansible takes them for text, not for templates.
    assert path.read_text().count("!unsafe") == 2


def test_a_session_file_names_what_it_lacks() -> None:
    secrets = [{"name": "token", "value": "hidden"}]
    text = session_file(conducted({"sessions.request": answered(("command",), secrets=secrets)}), "train", "")
    assert "# session_secrets: token needs a value or a file, which are not stored\n" in text
    assert f"# session_command: only {login()} can read it\n" in text
    assert "hidden" not in text


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_session_like_another_has_its_variables_besides_secrets(is_ended: bool, tmp_path: Path) -> None:
    secrets = [{"name": "token", "value": "hidden"}]
    script, own = {"sessions.request": answered(secrets=secrets)}, {"session_artifacts": str(tmp_path)}
    assert like(conducted(script, **own)) == {}
    kept = KeptRequests(str(tmp_path))
    kept.keep(SESSION, request(owner=login(), command=COMMAND, secrets=secrets), {})
    if is_ended:
        kept.forget(SESSION)
    with pytest.raises(InputError, match=r"session train has secrets, whose values are not stored \(token\)"):
        like(conducted(script, session_like="train", **own))
    found = like(conducted(script, session_like="train", session_secrets=secrets, **own))
    assert found["session_command"] == COMMAND
    assert "session_secrets" not in found


def test_a_session_is_only_like_what_this_controller_has_requested(tmp_path: Path) -> None:
    """Other users can write the store, and the command would launch what they have written as its own."""
    play = conducted({"sessions.request": answered()}, session_like="train", session_artifacts=str(tmp_path))
    with pytest.raises(InputError, match="session_like: 'train': must be a session that this controller has requested"):
        like(play)
    KeptRequests(str(tmp_path)).keep(SESSION, request(owner=login(), command="another"), {})
    with pytest.raises(ComputeError, match=r"another request of session train than this controller made \(command\)"):
        like(play)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"request": None}, "session_like: 'train': must be a session of"),
        (answered(("command",)), "session_like: 'train': must be a session of .*: only its owner can read command"),
        ({**answered(), "request": {**answered()["request"], "size": "many"}}, "The request of a is refused"),
    ],
)
def test_other_requests_are_refused(answer: Json, message: str) -> None:
    with pytest.raises(ComputeError, match=message):
        like(conducted({"sessions.request": answer}, session_like="train"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": None},
        {"mounts": [{"source": "/data"}]},
        {"secrets": [{"environment": "A"}]},
        {"millicpus": 0},
        {"strategy": "other"},
        {"priority": 10**9},
    ],
    ids=str,
)
def test_a_request_of_the_store_without_what_a_request_has_does_not_stop_the_others(change: dict[str, Any]) -> None:
    sessions = [stored({**request().to_json(), **change}), stored(None), stored(request().to_json())]
    found, refused = checked_sessions(sessions, "head1")
    assert [one.request for one in found] == [request()]
    assert [message.startswith("The request of head1 is refused: ") for message in refused] == [True, True]


@pytest.mark.parametrize(
    ("rank", "change"),
    [
        (0, {"size": 2}),
        (0, {"name": "first"}),
        (1, {"name": "main"}),
        (1, {"size": 3}),
        (1, {"after": ["ps"]}),
        (1, {"after": ["other"]}),
        (1, {"environment": {"BACKENDAI_CLUSTER_ROLE": "main"}}),
        (1, {"environment": {"A": "1\nPermitRootLogin yes"}}),
        (1, {"shm": 1 << 40}),
    ],
    ids=str,
)
def test_roles_of_the_store_follow_the_rules_of_a_request(rank: int, change: dict[str, Any]) -> None:
    document = json.loads(json.dumps(request(roles=[{"name": "ps", "size": 2}]).to_json()))
    assert checked_sessions([stored(document)], "head1")[1] == []
    document["roles"][rank].update(change)
    [message] = checked_sessions([stored(document)], "head1")[1]
    assert message.startswith("The request of head1 is refused: ")
