# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of an engine: files in containers, errors as one sentence, and a missing library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import docker
import pytest
from engine_lab import IMAGE, ROOT, archive, make_image

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import client
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import (
    AbsentError,
    Engine,
    LateError,
    UnreachableError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, LibraryError


@pytest.fixture(scope="module")
def engine(engine_host: str) -> Engine:
    sdk = docker.APIClient(base_url=engine_host, version="auto")
    # It stays: tests beside these ones use it.
    make_image(sdk)
    return Engine(engine_host, 30, "agent1")


@pytest.fixture
def container(engine: Engine) -> Iterator[str]:
    """A container that was created and never started."""
    identity = engine.create("cluster-compute-test-files", {"Image": IMAGE, "Cmd": ["sleep", "60"]})
    yield identity
    engine.remove(identity)


def test_files_of_a_container_that_does_not_run(engine: Engine, container: str) -> None:
    files = {"etc/motd": (b"hello\n", 0o644), "etc/empty": (b"", 0o600)}
    links = {
        "etc/link": "motd",
        "etc/up": "../etc/link",
        "etc/absolute": "/etc/motd",
        "etc/loop": "loop",
        "etc/dead": "no",
    }
    engine.put_archive(container, "/", archive(files, links))
    assert engine.read_file(container, "/etc/motd") == b"hello\n"
    assert engine.read_file(container, "/etc/empty") == b""
    for name in ("link", "up", "absolute"):
        assert engine.read_file(container, "/etc/" + name) == b"hello\n"
    for name in ("none", "dead"):
        assert engine.read_file(container, "/etc/" + name) is None
    assert engine.read_file(container, "/no/such/folder") is None
    assert engine.read_file(container, "/etc") == b""
    assert engine.read_file(container, "/etc/motd", most=3) == b"hel"
    assert engine.has_path(container, "/etc/motd")
    assert engine.has_path(container, "/bin")
    assert not engine.has_path(container, "/bin/none")


def test_no_more_is_read_than_asked_for(engine: Engine, engine_host: str, container: str) -> None:
    """Only the beginning of a long file or folder is read."""
    sdk: Any = docker.APIClient(base_url=engine_host, version="auto")
    grow = "mkdir -p /etc/big; for one in /etc/big/file /etc/long; do dd if=/dev/null of=$one bs=1M seek=100000 count=0; done"
    body = {"Image": IMAGE, "User": "0", "Entrypoint": ["/bin/sh", "-c"], "Cmd": [grow]}
    identity = engine.create("cluster-compute-test-long", body)
    try:
        engine.start(identity)
        assert sdk.wait(identity)["StatusCode"] == 0, engine.logs(identity)
        assert engine.read_file(identity, "/etc/long", most=4) == bytes(4)
        assert engine.read_file(identity, "/etc/big") == b""
        assert engine.read_file(identity, "/etc/hostname") is not None
    finally:
        engine.remove(identity)


def test_a_folder_that_is_not_there(engine: Engine, container: str) -> None:
    with pytest.raises(AbsentError, match=r"sub1: the engine of agent1 could not take files below /no/such: "):
        engine.put_archive(container, "/no/such", archive({}), "sub1")


def test_a_name_that_is_taken(engine: Engine, container: str) -> None:
    with pytest.raises(ConflictError, match="is already in use by container"):
        engine.create("cluster-compute-test-files", {"Image": IMAGE})


def test_what_is_not_there(engine: Engine) -> None:
    assert engine.image("cluster-compute-test/none") is None
    assert engine.volume("cluster-compute-test-none") is None
    assert engine.network("cluster-compute-test-none") is None
    assert engine.inspect("cluster-compute-test-none") is None
    engine.remove("cluster-compute-test-none")
    engine.remove_network("cluster-compute-test-none")
    with pytest.raises(AbsentError) as caught:
        engine.start("cluster-compute-test-none", "sub2")
    assert caught.value.message.startswith("sub2: the engine of agent1 could not start it: No such container")
    assert caught.value.where == "agent1"


def test_many_threads_share_it(engine: Engine) -> None:
    with ThreadPoolExecutor(8) as pool:
        images = list(pool.map(lambda _number: engine.image(IMAGE), range(40)))
    assert all(one is not None for one in images)


def test_an_engine_that_is_not_there() -> None:
    with pytest.raises(UnreachableError) as caught:
        Engine("unix:///no/such.sock", 5).info()
    assert caught.value.message == (
        "The engine does not answer at unix:///no/such.sock: No such file or directory; start the engine."
    )


def test_why_an_engine_does_not_answer_is_said_of_this_request_and_not_of_a_former_one() -> None:
    """A launch that fails asks again, to remove what it has made."""
    former = LateError("The engine did not answer in time.")
    former.__cause__ = TimeoutError("timed out")
    try:
        raise former
    except LateError:
        with pytest.raises(UnreachableError, match="No such file or directory; start the engine") as caught:
            Engine("unix:///no/such.sock", 5).info()
    assert not isinstance(caught.value, LateError)


def test_the_library_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(LibraryError) as caught:
        Engine("unix:///var/run/docker.sock")
    assert caught.value.library == "docker"
    assert "Traceback" in caught.value.trace


def test_paramiko_is_not_loaded_for_nothing(engine_host: str) -> None:
    code = (
        "import sys\n"
        f"from {client.__name__} import Engine\n"
        f"Engine({engine_host!r}).info()\n"
        "print('paramiko' in sys.modules)\n"
        "try:\n    import paramiko\nexcept ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    environment = {"PYTHONPATH": str(ROOT / "collections"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[0] == "False"
    # A later import succeeds, or reports that the library is not installed.
    assert "halted" not in done.stdout


def test_logs(engine: Engine, engine_host: str) -> None:
    sdk: Any = docker.APIClient(base_url=engine_host, version="auto")
    body = {"Image": IMAGE, "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo one; echo two >&2; echo three"]}
    identity = engine.create("cluster-compute-test-logs", body)
    try:
        engine.start(identity)
        sdk.wait(identity)
        assert sorted(engine.logs(identity).splitlines()) == ["one", "three", "two"]
        assert len(engine.logs(identity, tail=1).splitlines()) == 1
        assert engine.logs(identity, tail=0) == ""
        assert "T" in engine.logs(identity, tail=1, timestamps=True).split()[0]
    finally:
        engine.remove(identity)


def test_of_a_long_log_the_end_is_read(engine: Engine, engine_host: str) -> None:
    sdk: Any = docker.APIClient(base_url=engine_host, version="auto")
    write = "i=0; while [ $i -lt 100 ]; do head -c 65535 /dev/zero | tr '\\0' x; echo; i=$((i + 1)); done; echo end"
    body = {"Image": IMAGE, "Entrypoint": ["/bin/sh", "-c"], "Cmd": [write]}
    identity = engine.create("cluster-compute-test-logs", body)
    try:
        engine.start(identity)
        sdk.wait(identity)
        text = engine.logs(identity)
        assert text.startswith("(only the last 4 MiB of this log)\nx")
        assert text.endswith("x\nend\n")
        assert len(text) < 5 << 20
    finally:
        engine.remove(identity)


def test_the_counters_of_a_container_need_no_call_of_a_newer_sdk(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first supported release of the SDK has no parameter for a single reading."""
    monkeypatch.setattr(docker.APIClient, "stats", lambda _client, _container, decode=None, stream=True: {})
    body = {"Image": IMAGE, "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["sleep 60"]}
    identity = engine.create("cluster-compute-test-counters", body)
    try:
        engine.start(identity)
        reading = engine.stats(identity)
        assert reading is not None
        assert {"read", "cpu_stats", "memory_stats"} <= reading.keys()
    finally:
        engine.remove(identity)
    assert engine.stats(identity) is None
