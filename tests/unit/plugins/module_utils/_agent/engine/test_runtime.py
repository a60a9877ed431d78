# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which volume is the SSH runtime of a release, and what it contains."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.runtime import (
    COMPLETE,
    Scripts,
    install_runtime,
    is_installed,
    newest_runtime,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.runtime_scripts import runtime_scripts

SCRIPTS = Scripts({"bin/init": "#!/bin/sh\necho init\n", "libexec/life.sh": "#!/bin/sh\n"}, ("sh",))
PREFIX = "cluster-compute-runtime-"


def volume(name: str, edition: str = "", created: str = "") -> dict[str, Any]:
    labels = {"cluster.compute.runtime": name[len(PREFIX) :], "cluster.compute.runtime.edition": edition}
    return {"Name": name, "Labels": labels, "CreatedAt": created}


@pytest.mark.parametrize(
    ("volumes", "edition", "found"),
    [
        ([], "e", ""),
        ([volume("a", "e")], "e", ""),
        ([volume("a", "e"), volume("a" + COMPLETE, "e")], "e", "a"),
        ([volume("a", "other"), volume("a" + COMPLETE, "other")], "e", ""),
        ([volume("a", "other"), volume("a" + COMPLETE, "other")], "", "a"),
        ([volume("a" + COMPLETE, "e")], "e", ""),
        (
            [volume(name, "e", created) for name, created in (("a", "1"), ("b", "2"), ("c", "3"))]
            + [volume("a" + COMPLETE), volume("b" + COMPLETE)],
            "e",
            "b",
        ),
    ],
)
def test_the_newest_complete_volume_of_the_edition_counts(
    volumes: list[dict[str, Any]], edition: str, found: str
) -> None:
    assert newest_runtime(volumes, edition) == found


def test_another_script_is_another_edition() -> None:
    assert SCRIPTS.edition != Scripts({**SCRIPTS.texts, "bin/init": "#!/bin/sh\n"}, ("sh",)).edition
    assert SCRIPTS.edition != Scripts(SCRIPTS.texts, ("sh", "cat")).edition


def test_programs_are_run_by_the_shell_of_the_runtime() -> None:
    with tarfile.open(fileobj=io.BytesIO(SCRIPTS.archive("v"))) as archive:
        names = archive.getnames()
        program = archive.extractfile("bin/init")
        assert program is not None
        assert program.read() == b"#!/opt/cluster-compute/bin/sh\necho init\n"
        assert archive.getmember("bin/init").mode == 0o755
        assert archive.getmember("libexec/life.sh").mode == 0o644
    assert names[-1] == "version"


def test_the_release_has_all_scripts_of_pid_1() -> None:
    scripts = runtime_scripts()
    programs = {"bin/init", "bin/attached", "bin/everywhere", "bin/discover_hosts", "bin/run_own"}
    assert programs | {"libexec/life.sh", "libexec/limits.sh", "libexec/secrets.sh"} <= set(scripts.texts)
    assert not [path for path in scripts.texts if "make_runtime" in path]
    assert {"sh", "sleep", "date"} <= set(scripts.applets)
    assert not {"#", "SPDX-License-Identifier:"} & set(scripts.applets)


class Engine:
    """An engine that keeps volumes, some of which are mounted."""

    agent = "agent1"

    def __init__(self, *volumes: dict[str, Any], mounted: tuple[str, ...] = ()) -> None:
        self.kept = {one["Name"]: one for one in volumes}
        self.mounted = mounted
        self.files: dict[str, bytes] = {}

    def image(self, name: str) -> dict[str, Any]:
        return {"RootFS": {"Layers": [name]}, "Config": {}}

    def volume(self, name: str) -> dict[str, Any] | None:
        return self.kept.get(name)

    def volumes(self, _label: str) -> list[dict[str, Any]]:
        return list(self.kept.values())

    def remove_volume(self, name: str) -> None:
        if name in self.mounted:
            raise ConflictError("in use")
        self.kept.pop(name, None)

    def create_volume(self, name: str, labels: dict[str, str]) -> None:
        self.kept[name] = {"Name": name, "Labels": labels}

    def remove(self, name: str) -> None:
        pass

    def create(self, name: str, body: dict[str, Any]) -> str:
        mount = body["HostConfig"]["Mounts"][0]
        self.kept[mount["Source"]] = {"Name": mount["Source"], "Labels": mount["VolumeOptions"]["Labels"]}
        return name

    def put_archive(self, identity: str, path: str, archive: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            version = tar.extractfile("version")
            self.files[path + "/version"] = version.read() if version else b""

    def read_file(self, identity: str, path: str) -> bytes | None:
        return self.files.get(path)


def install(engine: Any, check: bool = False) -> dict[str, Any]:
    return install_runtime(engine, "reference", SCRIPTS, check=check)


def test_a_runtime_is_installed_once_and_a_half_filled_volume_again() -> None:
    engine = Engine()
    assert install(engine, check=True)["changed"]
    assert not engine.kept
    first = install(engine)
    name = first["volume"]
    assert first["changed"]
    assert sorted(engine.kept) == [name, name + COMPLETE]
    assert not install(engine)["changed"]
    del engine.kept[name + COMPLETE]
    assert install(engine)["changed"]
    assert newest_runtime(engine.volumes(""), SCRIPTS.edition) == name


def test_a_runtime_is_looked_at_again_until_it_is_complete_and_alone() -> None:
    """An older one that a session mounts is removed when that has ended."""

    def is_alone() -> bool:
        return is_installed(engine, engine.image("reference"), SCRIPTS.edition)  # type: ignore[arg-type]

    engine = Engine()
    assert not is_alone()
    name = install(engine)["volume"]
    assert is_alone()
    assert not is_installed(engine, engine.image("reference"), "another")  # type: ignore[arg-type]
    engine.kept[PREFIX + "old"] = volume(PREFIX + "old")
    assert not is_alone()
    install(engine)
    assert is_alone()
    del engine.kept[name + COMPLETE]
    assert not is_alone()


def test_another_image_fills_another_volume_and_a_session_keeps_its_own() -> None:
    engine = Engine()
    old = install(engine)["volume"]
    engine.mounted = (old,)
    engine.image = lambda _name: {"RootFS": {"Layers": ["of today"]}, "Config": {}}  # type: ignore[method-assign]
    renewed = install(engine)
    assert (renewed["changed"], renewed["removed"]) == (True, [])
    assert set(engine.kept) == {name + end for name in (old, renewed["volume"]) for end in ("", COMPLETE)}
    engine.mounted = ()
    assert install(engine)["removed"] == [old]


def test_a_mounted_volume_that_lost_its_mark_gets_it_again() -> None:
    engine = Engine()
    name = install(engine)["volume"]
    del engine.kept[name + COMPLETE]
    engine.mounted = (name,)
    assert install(engine)["changed"]
    assert newest_runtime(engine.volumes(""), SCRIPTS.edition) == name


def test_old_volumes_without_a_container_are_removed() -> None:
    used, unused, lost = PREFIX + "used", PREFIX + "unused", PREFIX + "lost" + COMPLETE
    old = [volume(name) for name in (used, used + COMPLETE, unused, unused + COMPLETE, lost, PREFIX + "1", "mine")]
    engine = Engine(*old, mounted=(used,))
    result = install(engine)
    assert result["removed"] == [PREFIX + "1", unused]
    assert {used, used + COMPLETE, "mine"} < set(engine.kept)
    assert not {unused, unused + COMPLETE, lost} & set(engine.kept)


def test_a_volume_of_another_origin_is_refused() -> None:
    engine = Engine()
    name = install(engine)["volume"]
    engine.kept = {name: {"Name": name, "Labels": None}}
    with pytest.raises(StateError, match="is not the SSH runtime; remove or rename it"):
        install(engine)
