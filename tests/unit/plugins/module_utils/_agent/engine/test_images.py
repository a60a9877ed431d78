# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes of a pull, as the engine's events tell them; a load that fails."""

from __future__ import annotations

import itertools
import resource
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from engine_lab import archive

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import counting, images
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import (
    AbsentError,
    LateError,
    UnreachableError,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.images import (
    ImageArchive,
    ImageEngine,
    Login,
    PullCount,
    WantedPull,
    load_image,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo, content_of
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until


def event(layer: str, status: str, now: int = 0, whole: int = 0) -> dict[str, Any]:
    return {"id": layer, "status": status, "progressDetail": {"current": now, "total": whole} if whole else {}}


def test_layers_are_summed_and_an_ended_one_is_whole() -> None:
    count = PullCount()
    for one in (
        {"status": "Pulling from team/train", "id": "2"},
        event("a", "Downloading", 10, 100),
        event("b", "Downloading", 5, 50),
        event("c", "Already exists"),
        event("a", "Download complete"),
        event("a", "Extracting", 70, 100),
        event("b", "Downloading", 25, 50),
    ):
        count.add(one)
    assert count.text() == "125 150"


@pytest.mark.parametrize("hostile", [{}, {"id": None}, {"status": "Downloading", "progressDetail": None}])
def test_events_without_numbers_count_nothing(hostile: dict[str, Any]) -> None:
    count = PullCount()
    count.add(hostile)
    assert count.text() == "0 0"


def test_the_count_is_in_a_new_file_while_the_pull_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress"
    monkeypatch.setattr(counting, "PERIOD", 0.001)
    engine = ImageEngine("unix:///nowhere", 60, "a1")
    monkeypatch.setattr(engine, "ask_registry", lambda *_given: None)

    def arrive(*given: Any) -> None:
        given[-1](event("a", "Downloading", 10, 100))
        assert wait_until(lambda: path.exists() and path.read_text() == "10 100\n", deadline_in(30))

    monkeypatch.setattr(engine, "pull", arrive)
    assert images.pull_image(engine, replace(PULLED, progress=str(path)), deadline_in(600)) == ""


class FullDisk(ImageEngine):
    """An engine with containerd's store, which keeps the image that it cannot unpack, beside what a user makes meanwhile."""

    def __init__(self) -> None:
        self.agent = "a1"
        self.images = {"former": described("1")}

    def image_ids(self) -> set[str]:
        return set(self.images)

    def image(self, reference: str) -> Any:
        return self.images[reference]

    def load(self, _archive: Any) -> str:
        self.images.update({"new": described("2"), "named": described("2", "mine:1"), "other": described("3")})
        raise EngineError("a1 could not load an image: no space left on device.", "a1")

    def remove_image(self, identity: str) -> None:
        del self.images[identity]


def test_an_image_may_take_longer_to_load_than_its_engine_may_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable would give an engine more time to unpack 30 GB on a slow disk."""
    identity, moments = "sha256:" + "0" * 64, itertools.count(0, 400)
    events = [{"status": "Loading layer"}] * 3 + [{"stream": f"Loaded image ID: {identity}\n"}]
    client = SimpleNamespace(load_image=lambda _archive: iter(events))
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client)
    monkeypatch.setattr(ImageEngine, "_answered", lambda _engine: "1.45")
    monkeypatch.setattr(time, "monotonic", lambda: float(next(moments)))
    assert ImageEngine("unix:///nowhere", 600, "agent1").load(b"") == identity


FULL = "no space left on device"


@pytest.mark.parametrize(
    "said", [{"error": FULL}, {"error": FULL, "errorDetail": {"message": FULL}}, {"errorDetail": {"message": FULL}}]
)
def test_an_engine_names_an_error_in_any_of_its_two_fields(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SimpleNamespace(load_image=lambda _archive: iter([said]))
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client)
    monkeypatch.setattr(ImageEngine, "_answered", lambda _engine: "1.52")
    with pytest.raises(EngineError, match="The engine of agent1 could not load an image: no space left on device"):
        ImageEngine("unix:///nowhere", 600, "agent1").load(b"")


def described(layer: str, *names: str) -> dict[str, Any]:
    return {"RootFS": {"Layers": [layer]}, "RepoTags": list(names)}


def test_an_image_that_the_engine_could_not_unpack_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(archive({"manifest.json": (b'[{"Config": "2.json", "RepoTags": null, "Layers": []}]', 0o644)}))
    engine = FullDisk()
    wanted = ImageArchive("x:1", str(path), "", content_of(described("2")))
    with pytest.raises(EngineError, match="no space left"):
        load_image(engine, wanted)
    assert set(engine.images) == {"former", "named", "other"}


class Sweeping(FullDisk):
    """An engine on which a commit of the same owner removes a copy ``at`` a moment before the copy has its name, once."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at, self.loads, self.tags = at, 0, {}

    def image(self, reference: str) -> Any:
        return self.images.get(self.tags.get(reference, reference))

    def load(self, _archive: Any) -> str:
        self.loads += 1
        self.images["copy"] = {**described("2"), "Id": "copy"}
        self._sweep("load")
        return "copy"

    def tag(self, identity: str, name: str) -> None:
        self._sweep("tag")
        if identity not in self.images:
            raise AbsentError("a1 could not name an image: No such image.", "a1")
        self.tags[name] = identity

    def info(self) -> EngineInfo:
        return EngineInfo()

    def _sweep(self, moment: str) -> None:
        if (self.loads, moment) == (1, self.at):
            del self.images["copy"]


@pytest.mark.parametrize("moment", ["load", "tag"])
def test_a_copy_that_a_commit_removes_before_it_has_its_name_is_loaded_again(tmp_path: Path, moment: str) -> None:
    """A commit holds its lock for minutes, so no copy waits for it."""
    path = tmp_path / "image.tar"
    path.write_bytes(archive({"manifest.json": (b'[{"Config": "2.json", "RepoTags": null, "Layers": []}]', 0o644)}))
    engine = Sweeping(moment)
    found = load_image(engine, ImageArchive("x:1", str(path), "copy", content_of(described("2"))))
    assert (found.id, engine.tags, engine.loads) == ("copy", {"x:1": "copy"}, 2)


STORE = {"DockerRootDir": "/data/docker", "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
OF_HOST = "/run/containerd/containerd.sock"


@pytest.mark.parametrize(
    ("info", "config", "folder"),
    [
        ({}, "", "/var/lib/docker"),
        ({"DockerRootDir": "/data/docker", "Containerd": {"Address": OF_HOST}}, "", "/data/docker"),
        ({**STORE, "Containerd": {"Address": OF_HOST}}, "", "/var/lib/containerd"),
        ({**STORE, "Containerd": {"Address": OF_HOST}}, 'version = 2\nroot = "/big/containerd"\n', "/big/containerd"),
        ({**STORE, "Containerd": {"Address": OF_HOST}}, '[plugins]\n  root = "/other"\n', "/var/lib/containerd"),
        ({**STORE, "Containerd": {"Address": "/run/docker/containerd/containerd.sock"}}, "", "/data/docker"),
        # Older engines do not name their containerd: they use the containerd of the host if it runs.
        (STORE, "", "/data/docker"),
    ],
)
def test_the_space_for_images_is_looked_up_where_the_engine_stores_them(
    info: dict[str, Any], config: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(config)
    monkeypatch.setattr(images, "CONTAINERD_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setattr(images.os.path, "exists", lambda _path: False)
    assert images.image_folder(EngineInfo.of(info)) == folder


class Stalled(BaseHTTPRequestHandler):
    """An engine that answers, and whose registry sends nothing more of an image."""

    protocol_version = "HTTP/1.1"
    address_string = log_message = lambda *_given: ""  # type: ignore[assignment]

    def do_GET(self) -> None:
        self._begin()
        is_archive = self.path.endswith("/get")
        self.wfile.write(b"100\r\na part" if is_archive else b"2\r\n{}\r\n0\r\n\r\n")
        self.close_connection = is_archive

    def do_POST(self) -> None:
        self._begin()
        self.wfile.write(b'15\r\n{"status": "Pulling"}\r\n')
        self.server.ended.wait(60)  # type: ignore[attr-defined]
        self.close_connection = True

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Api-Version", "1.41")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()


PULLED = WantedPull("registry.site/x:1")


@pytest.fixture
def stalled(tmp_path: Path) -> Iterator[ThreadingUnixStreamServer]:
    path = str(tmp_path / "engine")
    with ThreadingUnixStreamServer(path, Stalled) as server:
        server.ended = threading.Event()  # type: ignore[attr-defined]
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.ended.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


LATE = "a1 did not pull image registry.site/x:1 in time; raise session_pull_timeout, or check its network."
STALLED = "a1: registry registry.site has sent nothing of image registry.site/x:1 for 0.3 s; check the network to it."


@pytest.mark.parametrize(("stall", "seconds", "message"), [(0.3, 600, STALLED), (600, 0.3, LATE)])
def test_an_image_of_which_nothing_more_arrives_can_be_copied_from_another_agent(
    stalled: ThreadingUnixStreamServer, monkeypatch: pytest.MonkeyPatch, stall: float, seconds: float, message: str
) -> None:
    """The engine answers all other requests."""
    monkeypatch.setattr(images, "STALL", stall)
    engine = ImageEngine(f"unix://{stalled.server_address}", 60, "a1")
    assert images.pull_image(engine, PULLED, deadline_in(seconds)) == message


def test_a_pull_that_goes_on_at_its_deadline_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(
        _url=str,
        _post=lambda *_given, **_options: None,
        _raise_for_status=lambda _answer: None,
        _stream_helper=lambda *_given, **_options: itertools.repeat({"status": "Downloading"}),
    )
    engine = ImageEngine("unix:///nowhere", 60, "a1")
    monkeypatch.setattr(engine, "ask_registry", lambda *_given: None)
    monkeypatch.setattr(engine, "_borrow", lambda: client)
    assert images.pull_image(engine, replace(PULLED, login=Login("u", "p")), deadline_in(0.1)) == LATE


def test_an_engine_that_does_not_name_a_pulled_image_in_time_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry has sent all of it."""

    def silent(*_given: Any) -> None:
        raise LateError("The engine of a1 does not answer.", "a1")

    engine = ImageEngine("unix:///nowhere", 60, "a1")
    monkeypatch.setattr(engine, "ask_registry", lambda *_given: None)
    monkeypatch.setattr(engine, "pull", lambda *_given: None)
    monkeypatch.setattr(engine, "tag", silent)
    with pytest.raises(LateError, match="The engine of a1 does not answer"):
        images.pull_image(engine, replace(PULLED, digests=["registry.site/x@sha256:" + "0" * 64]), deadline_in(600))


def test_an_engine_that_ends_during_a_pull_does_not_answer(stalled: ThreadingUnixStreamServer) -> None:
    stalled.ended.set()  # type: ignore[attr-defined]
    engine = ImageEngine(f"unix://{stalled.server_address}", 60, "a1")
    with pytest.raises(UnreachableError, match="The engine of a1 does not answer at unix://"):
        images.pull_image(engine, PULLED, deadline_in(600))


def test_a_full_disk_is_not_an_engine_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ImageEngine("unix:///nowhere", 60, "a1")
    client = SimpleNamespace(get_image=lambda *_given: iter([b"x" * (1 << 20)] * 8))
    monkeypatch.setattr(engine, "_borrow", lambda: client)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, before[1]))
    try:
        with pytest.raises(
            StateError, match=f"a1: {tmp_path} cannot hold the archive of the image: File too large; free"
        ):
            images.save(engine, "sha256:0", str(tmp_path / "image.tar"), 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_of_an_archive_whose_engine_ends_meanwhile(
    tmp_path: Path, stalled: ThreadingUnixStreamServer
) -> None:
    """A part of an archive would count as an archive the next time."""
    folder = tmp_path / "archives"
    folder.mkdir()
    with pytest.raises(UnreachableError, match="The engine of a1 does not answer at unix://"):
        images.save(ImageEngine(f"unix://{stalled.server_address}", 60, "a1"), "sha256:0", str(folder / "image.tar"), 0)
    assert list(folder.iterdir()) == []


def test_an_archive_that_cannot_be_written_for_another_reason_asks_for_no_space(tmp_path: Path) -> None:
    (tmp_path / "image.tar").write_bytes(b"other")
    with pytest.raises(StateError, match=r"archive of the image: File exists\.$"):
        images.save(ImageEngine("unix:///nowhere", 60, "a1"), "sha256:0", str(tmp_path / "image.tar"), 0)
    assert (tmp_path / "image.tar").read_bytes() == b"other"
