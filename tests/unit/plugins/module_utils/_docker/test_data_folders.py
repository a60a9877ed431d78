# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that containers mount and that do not answer, and what that means for reports and for the end of a session."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents import report
from ansible_collections.cluster.compute.plugins.module_utils._core import bounded
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import (
    LABEL_BATCH,
    LABEL_CONTAINER,
    LABEL_SESSION,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._docker import data_folders, removal
from ansible_collections.cluster.compute.plugins.module_utils._docker.data_folders import (
    check_mounts_answer,
    silent_folders,
    waiting_programs,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import Removal

NAS = {"Type": "bind", "Source": "/srv/nas"}
CACHE = {"Type": "volume", "Name": "cache", "Source": "/var/lib/docker/volumes/cache/_data"}


def listed(identity: str, *mounts: dict[str, str], state: str = "running") -> dict[str, Any]:
    labels = {LABEL_SESSION: "s", LABEL_CONTAINER: identity, LABEL_SESSION + ".grace": "0", LABEL_BATCH: "true"}
    return {"Id": identity, "State": state, "Names": ["/" + identity], "Labels": labels, "Mounts": list(mounts)}


class Stubborn:
    """An engine that ends and removes containers, except those in which a program waits for a file server."""

    agent = "agent1"

    def __init__(self, containers: list[dict[str, Any]], waiting: tuple[str, ...]) -> None:
        self.held, self.waiting = containers, waiting
        self.volumes_removed: list[str] = []
        self.seconds = 60

    def hasty(self, seconds: int) -> Stubborn:
        self.seconds = seconds
        return self

    def containers(self, session: str = "", everyone: bool = False) -> list[dict[str, Any]]:
        return self.held

    def volumes(self) -> list[dict[str, Any]]:
        return [{"Name": "own", "Labels": {LABEL_SESSION: "s"}}]

    def networks(self) -> list[dict[str, Any]]:
        return []

    def terminate(self, _identity: str, _subject: str) -> None: ...

    def stop(self, identity: str, _grace: int, _subject: str) -> None:
        if identity in self.waiting:
            raise ConflictError("tried to kill container, but did not receive an exit event")
        self.held = [{**one, "State": "exited"} if one["Id"] == identity else one for one in self.held]

    def remove(self, identity: str, _subject: str) -> None:
        assert identity not in self.waiting
        self.held = [one for one in self.held if one["Id"] != identity]

    def remove_volume(self, name: str) -> None:
        self.volumes_removed.append(name)

    def read_file(self, *_arguments: Any) -> bytes:
        raise AssertionError("the engine would wait for the file server")

    has_path = read_file


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The folder /srv/nas does not answer. Returns what is asked."""
    asked: list[list[str]] = []

    def existing(paths: list[str], _seconds: float) -> dict[str, bool | None]:
        asked.append(list(paths))
        return {path: None if path == "/srv/nas" else True for path in paths}

    monkeypatch.setattr(data_folders, "existing", existing)
    return asked


def test_examples() -> None:
    assert doctest.testmod(data_folders).failed == 0


def test_each_folder_of_the_host_is_asked_once(lost: list[list[str]]) -> None:
    home = {"Type": "bind", "Source": "/home"}
    assert silent_folders([listed("a", NAS, home), listed("b", NAS), listed("c", CACHE), {"Id": "d"}]) == {"/srv/nas"}
    assert lost == [["/home", "/srv/nas"]]


def test_no_process_begins_without_a_folder_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "Pending", None)
    assert silent_folders([listed("a", CACHE), listed("b")]) == set()


def test_a_silent_folder_of_a_container_is_an_error_that_names_it(lost: list[list[str]]) -> None:
    check_mounts_answer([listed("a", CACHE)], "agent1")
    with pytest.raises(ComputeError, match="session_mounts: /srv/nas: it does not answer on agent1; check the file"):
        check_mounts_answer([listed("a", CACHE), listed("b", NAS)], "agent1")


def test_a_sentence_about_many_containers_is_short() -> None:
    sentence = waiting_programs([f"sub{number}" for number in range(100)], ["/b", "/a"], "agent1")
    assert sentence.startswith("sub0, sub1, sub2, sub3, sub4 and 95 more: on agent1 a program waits for /a, /b, which")


def test_a_report_reads_no_file_of_a_container_with_a_silent_folder() -> None:
    engine = Stubborn([], ())
    entries = report.observed(engine, [listed("s", NAS), listed("b", NAS)], True, {"/srv/nas"})  # type: ignore[arg-type]
    assert [entry.get("batch", {}).get("reason", "")[:24] for entry in entries] == ["session_mounts: /srv/nas"] * 2
    assert not any("apps" in entry for entry in entries)


def test_an_end_removes_what_ends_and_names_the_rest(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("a", NAS), listed("b", NAS), listed("c", state="exited")], ("b",))
    result = Removal(engine, ["s"], "", 4, 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert result["msg"] == waiting_programs(["b"], ["/srv/nas"], "agent1")
    assert (result["failed"], result["failure"]["code"], result["changed_names"]) == (True, "state", ["a", "c"])
    assert [one["Id"] for one in engine.held] == ["b"]
    assert engine.volumes_removed == []
    assert engine.seconds < 60


def test_another_end_with_the_server_completes_it(lost: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "silent_folders", lambda _listed: set())
    engine = Stubborn([listed("b", NAS)], ())
    result = Removal(engine, ["s"], "", 4, 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert "failed" not in result
    assert (engine.held, engine.volumes_removed, engine.seconds) == ([], ["own"], 60)


def test_check_mode_asks_no_folder(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("b", NAS)], ("b",))
    result = Removal(engine, ["s"], "", 4, 1).carry_out(check=True).to_json()  # type: ignore[arg-type]
    assert result["changed_names"] == ["b", "own"]
    assert lost == []
