# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel enforces of a container, in folders as it has them."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.control_groups import enforced
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import Enforced

ID, OTHER = "a1" * 32, "b2" * 32


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_version_2(tmp_path: Path) -> None:
    write(tmp_path, cgroup__controllers="cpu memory")
    slice_ = tmp_path / "system.slice"
    write(slice_, cpuset__cpus="")
    write(
        slice_ / f"docker-{ID}.scope",
        cpu__max="50000 100000",
        memory__max="67108864",
        pids__max="64",
        cpuset__cpus="0-1",
    )
    write(slice_ / f"docker-{OTHER}.scope", cpu__max="max 100000", memory__max="max", pids__max="max", cpuset__cpus="")
    assert enforced([ID, OTHER], str(tmp_path)) == {
        ID: Enforced(500, 64 << 20, 64, "0-1"),
        OTHER: Enforced(0, 0, 0, ""),
    }
    assert enforced([ID], str(tmp_path)).keys() == {ID}


def test_version_1(tmp_path: Path) -> None:
    for controller, files in {
        "cpu": {"cpu__cfs_quota_us": "150000", "cpu__cfs_period_us": "100000"},
        "memory": {"memory__limit_in_bytes": "9223372036854771712"},
        "cpuset": {"cpuset__cpus": "0-7"},
    }.items():
        write(tmp_path / controller / "docker" / ID, **files)
    write(tmp_path / "cpuset/docker", cpuset__cpus="0-7")
    # What the kernel does not limit is not known.
    assert enforced([ID], str(tmp_path)) == {ID: Enforced(1500, 0, None, "")}


def test_a_container_of_another_host_is_not_known(tmp_path: Path) -> None:
    assert enforced([ID], str(tmp_path)) == {}
    assert enforced([], str(tmp_path)) == {}
