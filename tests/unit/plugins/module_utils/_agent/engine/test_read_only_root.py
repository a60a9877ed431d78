# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stays writable in a container whose root file system is read-only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from engine_lab import MIB, Shape

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    container_body,
    goes_with_container,
    orphans,
    writable_folders,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount, Plan, Secret


def read_only(targets: tuple[str, ...] = (), **changes: Any) -> Plan:
    plan = Shape(mounts=tuple(Mount("/data", target) for target in targets)).plan()
    return replace(plan, session=replace(plan.session, read_only_root=True, **changes))


def host_config(plan: Plan) -> dict[str, Any]:
    config: dict[str, Any] = container_body(plan, plan.main, AgentSettings(runtime="runtime"))["HostConfig"]
    return config


def test_the_root_is_writable_unless_the_session_asks_for_it() -> None:
    plan = Shape().plan()
    assert not {"ReadonlyRootfs", "Tmpfs"} & set(host_config(plan))
    assert [mount["Target"] for mount in host_config(plan)["Mounts"]] == ["/opt/cluster-compute"]
    assert writable_folders(plan.session) == ()


def test_folders_with_files_of_the_session_are_volumes_of_the_container() -> None:
    """A volume without a name is removed with its container. Its labels say whose it is if the container was lost."""
    plan = read_only()
    config = host_config(plan)
    assert config["ReadonlyRootfs"] is True
    own = config["Mounts"][1:]
    assert [mount["Target"] for mount in own] == ["/etc", "/home", "/job", "/var/log"]
    for mount in own:
        assert (mount["Type"], "Source" in mount, "ReadOnly" in mount) == ("volume", False, False)
        labels = mount["VolumeOptions"]["Labels"]
        assert (labels[label.SESSION], labels[label.CONTAINER]) == (plan.session.id, plan.main.id)


def test_temporary_folders_are_bounded_by_the_memory_and_those_of_programs_run_them() -> None:
    plan = read_only()
    assert plan.main.resources.memory == 64 * MIB
    assert host_config(plan)["Tmpfs"] == {
        "/run": f"rw,noexec,nosuid,nodev,size={8 * MIB},mode=0755",
        "/tmp": f"rw,exec,nosuid,nodev,size={32 * MIB},mode=1777",
        "/var/tmp": f"rw,exec,nosuid,nodev,size={8 * MIB},mode=1777",
    }


def test_secrets_have_their_own_tmpfs_below_run() -> None:
    config = host_config(read_only(secrets=(Secret("token"),)))
    assert sorted(config["Tmpfs"]) == ["/run", "/run/secrets", "/tmp", "/var/tmp"]


@pytest.mark.parametrize(
    ("targets", "folders", "temporary"),
    [
        (("/home/work",), ("/etc", "/job", "/var/log"), ["/run", "/tmp", "/var/tmp"]),
        (("/home",), ("/etc", "/job", "/var/log"), ["/run", "/tmp", "/var/tmp"]),
        (("/home/work/data", "/homes"), ("/etc", "/home", "/job", "/var/log"), ["/run", "/tmp", "/var/tmp"]),
        (("/tmp", "/job"), ("/etc", "/home", "/var/log"), ["/run", "/var/tmp"]),
        (("/tmp/data", "/var/log/mine"), ("/etc", "/home", "/job", "/var/log"), ["/run", "/tmp", "/var/tmp"]),
        (("/var",), ("/etc", "/home", "/job"), ["/run", "/tmp"]),
    ],
)
def test_a_data_folder_takes_the_place_of_what_it_covers(
    targets: tuple[str, ...], folders: tuple[str, ...], temporary: list[str]
) -> None:
    plan = read_only(targets)
    assert writable_folders(plan.session) == folders
    assert sorted(host_config(plan)["Tmpfs"]) == temporary


def volume(name: str, container: str = "") -> dict[str, Any]:
    return {"Name": name, "Labels": {label.SESSION: "s", **({label.CONTAINER: container} if container else {})}}


def test_which_volumes_go_with_their_container() -> None:
    """The engine removes them; a volume that the session describes, and one whose container was lost, are removed by name."""
    assert goes_with_container(volume("a", "main"), {"a", "b"})
    assert not goes_with_container(volume("b"), {"a", "b"})
    assert not goes_with_container(volume("c", "sub"), {"a", "b"})


def test_what_a_lost_container_has_left_is_found_by_its_label() -> None:
    listed = [volume("a", "main"), volume("b"), volume("c", "sub"), volume("d", "sub")]
    assert orphans(listed, {"sub"}, used={"d"}) == ["c"]
