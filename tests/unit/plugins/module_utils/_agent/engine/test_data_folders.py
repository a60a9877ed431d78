# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that containers mount and that do not answer, and what that means for reports and for the end of a session."""

from __future__ import annotations

import copy
import doctest
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent import report
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import data_folders, removal
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import AbsentError, LateError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.data_folders import (
    check_image_paths,
    check_mounts_answer,
    found_folders,
    silent_folders,
    waiting_programs,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import Removal
from ansible_collections.cluster.compute.plugins.module_utils._shared import label, subprocess_call
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount, Session
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    ConflictError,
    InputError,
    StateError,
)

NAS = {"Type": "bind", "Source": "/srv/nas"}
CACHE = {"Type": "volume", "Name": "cache", "Source": "/var/lib/docker/volumes/cache/_data"}


def listed(identity: str, *mounts: dict[str, str], state: str = "running") -> dict[str, Any]:
    labels = {label.SESSION: "s", label.CONTAINER: identity, label.GRACE: "0", label.BATCH: "true"}
    return {"Id": identity, "State": state, "Names": ["/" + identity], "Labels": labels, "Mounts": list(mounts)}


class Stubborn:
    """An engine that ends and removes containers, except those in which a program waits for a file server, and those that hang."""

    agent = "agent1"

    def __init__(self, containers: list[dict[str, Any]], waiting: tuple[str, ...], hung: tuple[str, ...] = ()) -> None:
        self.held, self.waiting, self.hung = containers, waiting, hung
        self.volumes_removed: list[str] = []
        self.is_busy = self.is_hasty = False

    def hasty(self, _seconds: int) -> Stubborn:
        made = copy.copy(self)
        made.is_hasty = True
        return made

    def containers(self, session: str = "", everyone: bool = False) -> list[dict[str, Any]]:
        return list(self.held)

    def volumes(self) -> list[dict[str, Any]]:
        return [{"Name": "own", "Labels": {label.SESSION: "s"}}]

    def networks(self) -> list[dict[str, Any]]:
        return []

    def terminate(self, identity: str, _subject: str) -> None:
        if identity in self.hung:
            assert self.is_hasty
            raise LateError("it does not answer")

    def stop(self, identity: str, _grace: int, _subject: str) -> None:
        assert self.is_hasty
        assert identity not in self.hung
        if identity in self.waiting:
            raise ConflictError("tried to kill container, but did not receive an exit event")
        self.held[:] = [{**one, "State": "exited"} if one["Id"] == identity else one for one in self.held]

    def remove(self, identity: str, _subject: str, _deadline: float = 0.0) -> None:
        assert identity not in self.waiting
        if identity in self.hung and not self.is_busy:
            assert self.is_hasty
            raise LateError("it does not answer")
        self.held[:] = [one for one in self.held if one["Id"] != identity]

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
    monkeypatch.setattr(subprocess_call, "ForkedCall", None)
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
    assert [entry.batch.reason[:24] for entry in entries if entry.batch] == ["session_mounts: /srv/nas"] * 2
    assert [entry.apps for entry in entries] == [None, None]


def test_an_end_removes_what_ends_and_names_the_rest(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("a", NAS), listed("b", NAS), listed("c", state="exited")], ("b",))
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert result["failure"]["message"] == waiting_programs(["b"], ["/srv/nas"], "agent1")
    assert (result["failure"]["code"], result["changed_names"]) == ("state", ["a", "c"])
    assert [one["Id"] for one in engine.held] == ["b"]
    assert engine.volumes_removed == []


def test_an_end_on_a_busy_engine_removes_everything(lost: list[list[str]]) -> None:
    """The engine answered a signal late, but the container does not hang."""
    engine = Stubborn([listed("a"), listed("b")], (), ("a",))
    engine.is_busy = True
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert "failed" not in result
    assert (engine.held, engine.volumes_removed) == ([], ["own"])


def test_the_error_of_a_removal_after_a_late_answer_is_shown(
    lost: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine answers again: the container does not hang."""
    engine = Stubborn([listed("a"), listed("b")], (), ("a",))

    def refused(self: Stubborn, identity: str, _subject: str, _deadline: float = 0.0) -> None:
        if identity == "a":
            raise AbsentError("the disk is full")
        self.held[:] = [one for one in self.held if one["Id"] != identity]

    monkeypatch.setattr(Stubborn, "remove", refused)
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert (result["failure"]["message"], result["changed_names"], engine.volumes_removed) == (
        "the disk is full",
        ["b"],
        [],
    )


def test_an_end_names_containers_that_hang_and_does_not_wait_for_them(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("a"), listed("b"), listed("c")], (), ("a", "c"))
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert result["failure"]["message"].startswith("a, c: on agent1 the container hangs, and ")
    assert result["changed_names"] == ["b"]
    assert engine.volumes_removed == []


def test_an_end_names_the_file_server_for_which_a_container_hangs(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("a", NAS)], (), ("a",))
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert result["failure"]["message"] == waiting_programs(["a"], ["/srv/nas"], "agent1")


def test_another_end_with_the_server_completes_it(lost: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "silent_folders", lambda _listed: set())
    engine = Stubborn([listed("b", NAS)], ())
    result = Removal(engine, ["s"], "", 1).carry_out(check=False).to_json()  # type: ignore[arg-type]
    assert "failed" not in result
    assert (engine.held, engine.volumes_removed) == ([], ["own"])


def test_check_mode_asks_no_folder(lost: list[list[str]]) -> None:
    engine = Stubborn([listed("b", NAS)], ("b",))
    result = Removal(engine, ["s"], "", 1).carry_out(check=True).to_json()  # type: ignore[arg-type]
    assert result["changed_names"] == ["b", "own"]
    assert lost == []


def session(folder: str, *mounts: Mount) -> Session:
    folders = (folder,) if folder else ()
    return replace(plan(request()).session, permitted_folders=folders, mounts=mounts)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """What users of a permitted folder can make there: folders and links."""
    made = tmp_path / "pool"
    (made / "alice" / "data").mkdir(parents=True)
    (made / "link").symlink_to("/etc")
    (made / "near").symlink_to("alice")
    return made


def lines(folder: str, *mounts: Mount) -> list[str]:
    with found_folders(session(folder, *mounts), "node1") as found:
        return found.decode().split("\n")


def test_what_is_mounted_below_a_permitted_folder_is_what_was_found(pool: Path) -> None:
    found = os.stat(pool / "alice" / "data")
    mounts = (Mount(f"{pool}/alice/data/", "/my data"), Mount("cache", "/cache", "volume"), Mount("/", "/host"))
    assert lines(str(pool), *mounts) == [f"{found.st_dev}:{found.st_ino} /my data", "", ""]


@pytest.mark.parametrize(("source", "link"), [("link", "link"), ("link/ssl", "link"), ("near/data", "near")])
def test_a_link_below_a_permitted_folder_is_refused(pool: Path, source: str, link: str) -> None:
    expected = exactly(
        f"session_mounts: '{pool}/{source}': must have no symbolic link below {pool}, and {pool}/{link} on node1 is one "
        "(policy of this site)."
    )
    with pytest.raises(InputError, match=expected):
        lines(str(pool), Mount(f"{pool}/{source}", "/data"))


def test_links_of_the_administrator_are_followed(pool: Path, tmp_path: Path) -> None:
    (tmp_path / "srv").symlink_to(pool)
    for folder in (f"{tmp_path}/srv", f"{pool}/near"):
        below = "/alice/data" if folder.endswith("srv") else "/data"
        assert lines(folder, Mount(folder + below, "/data"))[0].endswith(":%d /data" % os.stat(folder + below).st_ino)


def test_without_a_policy_nothing_is_looked_at() -> None:
    assert lines("", Mount("/no/such/link", "/data")) == ["", ""]


def test_a_folder_that_is_gone_is_named(pool: Path) -> None:
    with pytest.raises(InputError, match=f"{pool}/gone: No such file or directory"):
        lines(str(pool), Mount(f"{pool}/gone/x", "/data"))


@pytest.mark.parametrize("link", ["/opt", "/opt/cluster-compute", "/srv", "/srv/data"])
def test_an_image_with_a_link_where_something_is_mounted_is_refused(link: str) -> None:
    asked: list[str] = []

    def path_stat(_identity: str, path: str, _subject: str) -> dict[str, Any]:
        asked.append(path)
        return {"linkTarget": "/x" if path == link else ""}

    engine: Any = SimpleNamespace(path_stat=path_stat, agent="node1")
    with pytest.raises(StateError, match=f"^main1: {link} is a symbolic link in the image or the container"):
        check_image_paths(engine, session("/pool", Mount("/pool/x", "/srv/data")), plan(request()).main, "0123")
    assert asked[-1] == link
