# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration and the archive of an image that is made of a container, and what is refused before and meanwhile."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import stat
import tarfile
import threading
from collections import namedtuple
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import commit
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.images import at_work
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    EngineError,
    StateError,
)

SESSION, CONTAINER = "3614fdf3-0e04-4a4b-9a9a-000000000001", "3614fdf3-0e04-4a4b-9a9a-000000000002"
WANTED = commit.CommitSpec(SESSION, "alice", "train", "main1", "team/train:2")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
BASE: Json = {
    "Id": "sha256:base",
    "RepoTags": ["team/base:1"],
    "RepoDigests": ["team/base@sha256:digest"],
    "Architecture": "arm64",
    "Os": "linux",
    "Variant": "v8",
    "RootFS": {"Layers": ["sha256:l1", "sha256:l2"]},
    "Config": {
        "Hostname": "builder",
        "Image": "sha256:parent",
        "Env": ["A=1"],
        "Cmd": None,
        "User": "app",
        "Labels": {"vendor": "x", "cluster.compute.session.owner": "bob", "cluster.compute.origin.owner": "bob"},
    },
}
LISTED: Json = {
    "Id": "c0ffee",
    "ImageID": "sha256:base",
    "State": "running",
    "Names": ["/alice.train.main1"],
    "Labels": {
        "cluster.compute.session": SESSION,
        "cluster.compute.session.owner": "alice",
        "cluster.compute.session.name": "train",
        "cluster.compute.container": CONTAINER,
        "cluster.compute.container.role": "main",
        "cluster.compute.container.index": "1",
    },
}
MINE: Json = {
    "Created": "2026-02-28T00:00:00.25Z",
    "Config": {
        "Labels": {
            "cluster.compute.origin.owner": "alice",
            "cluster.compute.origin.session": SESSION,
            "org.opencontainers.image.created": "2026-02-28T00:00:00.250000+00:00",
        }
    },
}
# What alice has built from such an image, with docker build.
BUILT: Json = {**MINE, "Created": "2026-02-28T10:00:00Z"}
Disk = namedtuple("Disk", "f_bavail f_frsize")


class Engine(commit.CommitEngine):
    """An engine with one container of a session."""

    def __init__(self, export: bytes = b"", *, driver: Any = (), **images: Json) -> None:
        self.agent, self.images, self.driver, self.pieces = "a1", images, driver, export
        self.loaded = b""
        self.removed: list[str] = []

    def containers(self, session: str = "", **_more: Any) -> list[Json]:
        return [LISTED] if session == SESSION else []

    def image(self, reference: str) -> Json | None:
        return {"sha256:base": BASE, "used": MINE, "sha256:old": MINE, "sha256:built": BUILT, **self.images}.get(
            reference
        )

    def info(self) -> EngineInfo:
        return EngineInfo(data_root="/engine", storage_status=tuple(self.driver))

    def sizes(self, identity: str) -> Json:
        return {"SizeRw": 3000, "SizeRootFs": 90000}

    def changes(self, identity: str) -> tuple[set[str], list[str]]:
        return {"usr/new", "home/work/.ssh/id"}, ["etc/motd"]

    def exported(self, identity: str) -> Iterator[bytes]:
        yield from (self.pieces[start : start + 100] for start in range(0, len(self.pieces), 100))

    def load(self, archive: Any) -> str:
        blocks = list(archive)
        # Older releases of requests send an empty block as the end of the body.
        assert all(blocks)
        self.loaded = b"".join(blocks)
        with tarfile.open(fileobj=io.BytesIO(self.loaded)) as tar:
            self.files = {member.name: _read(tar, member) for member in tar}
        [self.manifest] = json.loads(self.files["manifest.json"])
        config = json.loads(self.files[self.manifest["Config"]])
        self.images["sha256:" + self.manifest["Config"][:-5]] = {
            "Created": config["created"],
            "Config": config["config"],
        }
        return ""

    def tag(self, identity: str, name: str) -> None:
        self.images[name] = self.images[identity]

    def nameless(self) -> list[Json]:
        labels = MINE["Config"]["Labels"]
        return [{"Id": identity, "Labels": labels} for identity in ("used", "sha256:old", "sha256:built")]

    def remove_image(self, identity: str) -> None:
        if identity == "used":
            raise ConflictError("a1 could not remove image used: a container uses it.", "a1")
        self.removed.append(identity)


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file else b""


def export(*names: str) -> bytes:
    """An archive as the engine writes it."""
    text = b""
    for name in names:
        member = tarfile.TarInfo(name)
        member.size = 4
        text += member.tobuf(tarfile.PAX_FORMAT) + b"text".ljust(512, b"\0")
    return text + b"\0" * 1024


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_configuration_is_the_one_of_the_base_image() -> None:
    origin = commit.Origin("c0ffee", BASE, False, 3000)
    made = commit.configuration(WANTED, origin, "sha256:new", NOW)
    assert made == {
        "architecture": "arm64",
        "os": "linux",
        "variant": "v8",
        "created": "2026-03-01T00:00:00+00:00",
        "config": {
            "Env": ["A=1"],
            "User": "app",
            "Labels": {
                "vendor": "x",
                "cluster.compute.origin.session": SESSION,
                "cluster.compute.origin.owner": "alice",
                "cluster.compute.origin.name": "train",
                "cluster.compute.origin.container": "main1",
                "org.opencontainers.image.base.name": "team/base:1",
                "org.opencontainers.image.base.digest": "sha256:digest",
                "org.opencontainers.image.created": "2026-03-01T00:00:00+00:00",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:l1", "sha256:l2", "sha256:new"]},
        "history": [
            {"created_by": "layer of sha256:base"},
            {"created_by": "layer of sha256:base"},
            {"created": "2026-03-01T00:00:00+00:00", "created_by": "cluster-compute commit"},
        ],
    }


@pytest.mark.parametrize("squash", [False, True])
def test_the_engine_gets_the_layer_and_then_the_name(home: Path, *, squash: bool) -> None:
    engine = Engine(export("etc/old", "home/work/.ssh/id", "usr/new"))
    origin = commit.Origin("c0ffee", BASE, squash, 3000)
    commit.make(engine, WANTED, origin, commit.Written())
    manifest, files = engine.manifest, engine.files
    config = files[manifest["Config"]]
    assert manifest["Config"] == hashlib.sha256(config).hexdigest() + ".json"
    assert (manifest["RepoTags"], len(manifest["Layers"])) == (None, 1 if squash else 3)
    assert engine.images["team/train:2"]["Config"] == json.loads(config)["config"]
    layer = files[manifest["Layers"][-1]]
    assert json.loads(config)["rootfs"]["diff_ids"][-1] == "sha256:" + hashlib.sha256(layer).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getnames() == (["etc/old", "usr/new"] if squash else ["usr/new", "etc/.wh.motd"])
    assert engine.removed == ["sha256:old"]
    # It has the lock.
    assert list(home.iterdir()) == [home / ".ansible"]


def test_an_image_that_the_engine_could_not_unpack_is_removed(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """An engine with containerd's store keeps it, without a name."""

    def load(_engine: Engine, _archive: Any) -> str:
        raise EngineError("a1 could not load an image: no space left on device.", "a1")

    monkeypatch.setattr(Engine, "load", load)
    engine = Engine(export("usr/new"))
    with pytest.raises(EngineError, match="no space left"):
        commit.make(engine, WANTED, commit.find_committed(engine, WANTED), commit.Written())
    assert engine.removed == ["sha256:old"]


@pytest.mark.parametrize(
    ("owner", "sessions", "removed"),
    [("alice", (), ["sha256:old"]), ("bob", (), []), ("", [SESSION], ["sha256:old"]), ("", [CONTAINER], [])],
)
def test_what_the_engine_has_loaded_for_a_killed_process_is_removed(
    owner: str, sessions: list[str], removed: list[str]
) -> None:
    engine = Engine()
    commit.sweep(engine, owner, sessions)
    assert engine.removed == removed


def test_an_image_whose_name_is_a_digest_is_not_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    digests: dict[str, list[str] | None] = {
        "pushed": ["registry.example.org/team/train@sha256:" + "a" * 64],
        "older": ["<none>@<none>"],
        "none": None,
        "empty": [],
    }
    listed = [{"Id": name, "Labels": {}, "RepoDigests": found} for name, found in digests.items()]
    client = SimpleNamespace(images=lambda filters: listed if filters["dangling"] else [])
    monkeypatch.setattr(commit.CommitEngine, "_asking", lambda _engine, _what: nullcontext(client))
    assert [one["Id"] for one in commit.CommitEngine("", 1, "a1").nameless()] == ["older", "none", "empty"]


@pytest.mark.parametrize("how", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_what_a_live_process_loads_is_no_leftover(how: int) -> None:
    engine = Engine()
    with at_work(how) as is_held:
        assert is_held
        commit.sweep(engine, "alice")
        assert engine.removed == []
    commit.sweep(engine, "alice")
    assert engine.removed == ["sha256:old"]


def test_no_other_login_can_hold_the_lock(home: Path) -> None:
    """flock(2) needs an open file: who can open none, holds up no commit."""
    with at_work(fcntl.LOCK_EX) as is_held:
        assert is_held
        modes = [
            stat.S_IMODE((home / ".ansible/tmp" / name).stat().st_mode) for name in ("", "cluster-compute-images.lock")
        ]
        assert modes == [0o700, 0o600]
        with (home / ".ansible/tmp/cluster-compute-images.lock").open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        handle = os.open(home, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)


def test_a_commit_waits_for_another_one_on_its_agent() -> None:
    """What goes on without its controller never takes the name of a later image."""
    engine, origin = Engine(export("usr/new")), commit.Origin("c0ffee", BASE, False, 3000)
    later = threading.Thread(target=commit.make, args=(engine, WANTED, origin, commit.Written()), daemon=True)
    with at_work(fcntl.LOCK_EX):
        later.start()
        later.join(0.3)
        assert engine.loaded == b""
    later.join()
    assert engine.images["team/train:2"]


def test_a_home_that_cannot_be_locked_stops_no_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    engine = Engine()
    with at_work(fcntl.LOCK_SH) as is_held:
        assert not is_held
    commit.sweep(engine, "alice")
    assert engine.removed == []


def test_a_file_system_without_locks_holds_up_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a lock that another process holds is waited for."""

    def refused(_file: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    engine, origin = Engine(export("usr/new")), commit.Origin("c0ffee", BASE, False, 3000)
    commit.make(engine, WANTED, origin, commit.Written())
    assert engine.images["team/train:2"]


@pytest.mark.parametrize("cut", [1024, 1023, 512, 2048, 1500])
def test_an_export_that_ends_early_makes_no_image(cut: int) -> None:
    """The engine ends the archive without an error when a file has become shorter than its entry says."""
    engine = Engine(export("usr/a", "usr/new")[:-cut])
    with pytest.raises(StateError, match="a program shortened a file of main1"):
        commit.make(engine, WANTED, commit.Origin("c0ffee", BASE, False, 3000), commit.Written())
    assert engine.loaded == b""


def test_a_container_that_grows_beyond_what_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "MARGIN", 0)
    engine = Engine(export("usr/new"))
    with pytest.raises(StateError, match="has grown while it was read"):
        commit.make(engine, WANTED, commit.Origin("c0ffee", BASE, False, 1000), commit.Written())
    assert engine.loaded == b""


def test_more_changes_than_memory_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_MOST_CHANGES", 1)
    with pytest.raises(StateError, match="more than 1 files; set session_commit_squash"):
        commit.make(Engine(), WANTED, commit.Origin("c0ffee", BASE, False, 1000), commit.Written())


def test_a_name_of_another_image() -> None:
    engine = Engine(mine=MINE, foreign={"Config": {"Labels": None}}, built=BUILT)
    commit.check_image_name(engine, "mine", "alice")
    commit.check_image_name(engine, "nothing", "alice")
    for name, owner in (("mine", "bob"), ("foreign", "alice"), ("built", "alice")):
        with pytest.raises(StateError, match=f"has an image {name} that is not of a session of {owner}"):
            commit.check_image_name(engine, name, owner)


@pytest.mark.parametrize(
    ("squash", "driver", "size"),
    [
        (False, [["Backing Filesystem", "extfs"]], 3000),
        (True, [], 90000),
        (False, [["driver-type", "io.containerd.snapshotter.v1"]], 90000),
    ],
)
def test_what_an_image_can_be_made_of(squash: bool, driver: Any, size: int) -> None:
    wanted = commit.CommitSpec(SESSION, "alice", "train", "main1", "team/train:2", squash)
    found = commit.find_committed(Engine(driver=driver), wanted)
    assert (found.identity, found.size, found.squash) == ("c0ffee", size, size == 90000)


@pytest.mark.parametrize(
    "wanted",
    [
        commit.CommitSpec(SESSION, "bob", "train", "main1", "x"),
        commit.CommitSpec(SESSION, "alice", "train", "sub1", "x"),
        commit.CommitSpec(CONTAINER, "alice", "train", "main1", "x"),
    ],
)
def test_containers_of_others(wanted: commit.CommitSpec) -> None:
    with pytest.raises(StateError, match="a1 has no container"):
        commit.find_committed(Engine(), wanted)


def test_a_disk_without_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit.os, "statvfs", lambda _folder: Disk(commit.MARGIN + 2999, 1))
    with pytest.raises(
        StateError, match=r"a1 has 256m free in .*, but image team/train:2 needs up to 256m for a while"
    ):
        commit.find_committed(Engine(), WANTED)
