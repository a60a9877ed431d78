# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller keeps of its requests, and what it refuses of the store because of that."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from samples import SESSION, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import (
    ENDED_FOLDER,
    FOLDER,
    MOST_ENDED,
    KeptRequests,
    NotRequestedError,
    StaleSessionDirs,
)

PATH = "~/keys/token"
ASKED = request(secrets=[{"name": "token", "file": PATH}], command="train")


@pytest.fixture
def kept(tmp_path: Path) -> KeptRequests:
    made = KeptRequests(str(tmp_path))
    made.keep(SESSION, ASKED, {"token": PATH})
    return made


def test_the_path_of_a_secret_is_on_the_controller_alone(kept: KeptRequests, tmp_path: Path) -> None:
    assert PATH not in json.dumps(ASKED.to_json())
    assert kept.files(SESSION) == {"token": PATH}
    folder = tmp_path / FOLDER
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / SESSION)] == [0o700, 0o600]
    kept.forget(SESSION)
    kept.forget(SESSION)
    assert (kept.files(SESSION), os.listdir(folder)) == ({}, [])


def test_a_request_of_the_store_is_the_one_that_was_made(kept: KeptRequests) -> None:
    stored = Request.from_json(json.loads(json.dumps(ASKED.to_json())))
    kept.check(SESSION, stored, "head1")
    # A pass may change what a waiting session keeps.
    kept.check(SESSION, request(secrets=[{"name": "token", "value": "x"}], command="train", pull="never"), "head1")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"command": "send /run/secrets/token"}, "command"),
        ({"image": "evil", "command": "train"}, "image"),
        ({"owner": "mallory", "command": "train"}, "owner"),
    ],
)
def test_another_request_of_the_store_is_refused(kept: KeptRequests, changes: dict[str, str], names: str) -> None:
    other = request(secrets=[{"name": "token", "file": PATH}], **changes)
    with pytest.raises(ComputeError, match=r"^The session store of head1 has another request of .* \(%s\)" % names):
        kept.check(SESSION, other, "head1")


@pytest.mark.parametrize("stored", [ASKED, request()])
def test_a_session_that_this_controller_has_not_requested_is_left_alone(stored: Request, tmp_path: Path) -> None:
    with pytest.raises(
        NotRequestedError, match=r"^Session train is left alone: this controller has not requested it \("
    ):
        KeptRequests(str(tmp_path)).check(SESSION, stored, "head1")


def test_the_requests_of_another_user_are_refused_before_a_session_is_placed(
    kept: KeptRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert StaleSessionDirs.of(kept.base, check=False).sessions == [SESSION]
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(ComputeError, match="belongs to another user; set session_artifacts to another directory"):
        StaleSessionDirs.of(kept.base, check=False)


@pytest.mark.parametrize("session", ["../train/identity", "", None, "x" * 36])
def test_an_id_is_no_path(kept: KeptRequests, session: object) -> None:
    for call in (kept.files, kept.forget):
        with pytest.raises(ComputeError, match="is refused"):
            call(session)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"request": {}}', '{"request": {"name": "train", "owner": "a"}, "files": [1]}']
)
def test_a_damaged_file_of_a_request_names_the_remedy(kept: KeptRequests, tmp_path: Path, content: str) -> None:
    (tmp_path / FOLDER / SESSION).write_text(content)
    for read in (lambda: kept.files(SESSION), lambda: kept.check(SESSION, ASKED, "head1")):
        with pytest.raises(ComputeError, match=rf"{SESSION} is damaged: end session .* with terminate\.yml"):
            read()


def test_the_request_of_an_ended_session_is_only_for_launches_like_it(kept: KeptRequests, tmp_path: Path) -> None:
    kept.check_any(SESSION, ASKED, "head1")
    kept.forget(SESSION)
    kept.check_any(SESSION, ASKED, "head1")
    assert PATH not in (tmp_path / ENDED_FOLDER / SESSION).read_text()
    with pytest.raises(ComputeError, match=r"made \(image\): it .* another controller, with a copy of"):
        kept.check_any(SESSION, Request.from_json({**ASKED.to_json(), "image": "evil"}), "head1")
    # A row of the store that has come to life again is launched by no pass.
    with pytest.raises(NotRequestedError):
        kept.check(SESSION, ASKED, "head1")
    assert kept.sessions() == []


def test_only_the_requests_of_the_last_ended_sessions_are_kept(kept: KeptRequests, tmp_path: Path) -> None:
    folder = tmp_path / ENDED_FOLDER
    folder.mkdir()
    for number in range(MOST_ENDED):
        path = folder / f"{number:08}-0000-4000-8000-000000000000"
        path.touch()
        os.utime(path, (number, number))
    kept.forget(SESSION)
    left = os.listdir(folder)
    assert (len(left), SESSION in left, f"{0:08}-0000-4000-8000-000000000000" in left) == (MOST_ENDED, True, False)
