# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data in mounted folders and volumes survives the session; everything else is removed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from controller import SMALL, Controller
from docker.errors import NotFound

PAIR: dict[str, Any] = {**SMALL, "session_cluster_size": 2}


@pytest.fixture
def volumes(controller: Controller) -> Iterator[list[str]]:
    """The names of volumes that the first mount creates; they are removed after the test."""
    names = [f"cluster-compute-test-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    yield names
    for name in names:
        with suppress(NotFound):
            controller.client.remove_volume(name, force=True)


def mounts(*mounted: dict[str, Any]) -> dict[str, Any]:
    return {**PAIR, "session_mounts": list(mounted)}


def test_mounted_data_survives_a_session(controller: Controller, volumes: list[str], tmp_path: Path) -> None:
    """Folders, read-only folders, named volumes and volumes with options, in every container."""
    for name in ("data", "given", "far"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "before").write_text("from before\n")
        os.chown(tmp_path / name, 4321, 4321)
    options = {"type": "none", "o": "bind", "device": str(tmp_path / "far")}
    folders = mounts(
        {"source": str(tmp_path / "data"), "target": "/data"},
        {"source": str(tmp_path / "given"), "target": "/given", "mode": "ro"},
        {"type": "volume", "source": volumes[0], "target": "/scratch"},
        {"type": "volume", "source": volumes[1], "target": "/far", "options": options},
    )
    first = controller.launched("folders", session_user={"uid": 4321, "gid": 4321}, **folders)
    assert first.say(
        "main1", "cat /*/before; for at in /data /scratch /far ~; do echo $at >$at/after; done"
    ) == "\n".join(["from before"] * 3)
    assert first.say("sub1", "cat /*/after").split() == ["/data", "/far", "/scratch"]
    assert "Read-only" in first.ssh("sub1", "echo no >/given/after").text
    assert controller.client.inspect_volume(volumes[1])["Options"] == options
    controller.terminate("folders").check()
    after = tmp_path / "data" / "after"
    assert (after.read_text(), after.stat().st_uid) == ("/data\n", 4321)
    assert controller.client.inspect_volume(volumes[0])["Name"] == volumes[0]
    with pytest.raises(NotFound):
        controller.client.inspect_volume(volumes[1])
    second = controller.launched("folders", session_user={"uid": 5555, "gid": 5555}, **folders)
    assert second.say("sub1", "cat /*/after; ls ~").split() == ["/data", "/far", "/scratch"]
    assert second.say("sub1", "ls -nd /scratch").split()[2] == "4321"
    controller.terminate("folders").check()


@pytest.mark.skipif(
    "nfs" in Path("/proc/filesystems").read_text(),
    reason="this host has an NFS client, which would wait for a server that does not exist",
)
def test_an_nfs_volume_is_refused_on_a_host_without_an_nfs_client(controller: Controller, volumes: list[str]) -> None:
    """The error says what is missing, and nothing is left."""
    options = {"type": "nfs", "o": "addr=192.0.2.10,rw,nfsvers=4", "device": ":/export/data"}
    refused = controller.launch(
        "nfs-folder", **mounts({"type": "volume", "source": volumes[0], "target": "/data", "options": options})
    )
    assert refused.code == 2
    assert "failed to mount local volume" in refused.message
    assert "that the host can mount it" in refused.message
    assert controller.engine("nfs-folder") == {}


def test_a_missing_folder_is_refused(controller: Controller, tmp_path: Path) -> None:
    refused = controller.launch("nowhere", **mounts({"source": str(tmp_path / "missing"), "target": "/data"}))
    assert refused.code == 2
    assert str(tmp_path / "missing") in refused.message
    assert controller.engine("nowhere") == {}
