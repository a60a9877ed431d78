# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bodies of the engine's requests, from a plan alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from engine_lab import MIB, Shape, with_container

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    EngineLimits,
    container_body,
    network_body,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import DEFAULT_PATH
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import (
    Gpu,
    Mount,
    Port,
    Resources,
    Secret,
)


def body(shape: Shape | None = None, rank: int = 0, settings: AgentSettings | None = None) -> dict[str, Any]:
    plan = (shape or Shape()).plan()
    return container_body(plan, plan.containers[rank], settings or AgentSettings())


def test_who_it_is_and_what_runs() -> None:
    plan = Shape().plan()
    made = container_body(plan, plan.containers[1], AgentSettings())
    assert made["Hostname"] == "sub1"
    assert made["User"] == "0:0"
    assert made["Entrypoint"] == ["/opt/cluster-compute/bin/init"]
    assert made["Cmd"] == []
    assert made["WorkingDir"] == "/home/work"
    assert made["Labels"] == plan.containers[1].labels
    assert made["Healthcheck"] == {"Test": ["NONE"]}
    assert made["HostConfig"]["RestartPolicy"] == {"Name": "no"}
    assert made["HostConfig"]["Init"] is False
    assert not {"CapAdd", "Privileged", "SecurityOpt"} & set(made["HostConfig"])
    bounded = replace(plan, session=replace(plan.session, permitted_folders=("/srv",)))
    assert container_body(bounded, plan.containers[1], AgentSettings())["Cmd"] == ["check-folders"]


def test_on_the_network_of_its_agent_a_container_has_all_names_and_publishes_nothing() -> None:
    plan = Shape(size=2).plan()
    plan = replace(plan, network=replace(plan.network, driver="host"))
    made = container_body(plan, plan.main, AgentSettings())
    assert made["HostConfig"]["NetworkMode"] == "host"
    assert made["HostConfig"]["ExtraHosts"] == ["main1:10.213.77.2", "sub1:10.213.77.3"]
    assert (made["NetworkingConfig"], made["ExposedPorts"]) == ({"EndpointsConfig": {}}, {})
    assert made["HostConfig"]["PortBindings"] == {}


def test_network_by_name_with_a_static_address_and_every_name() -> None:
    plan = Shape(size=12).plan()
    made = container_body(plan, plan.containers[10], AgentSettings())
    place = made["NetworkingConfig"]["EndpointsConfig"][plan.network.name]
    assert place == {"IPAMConfig": {"IPv4Address": "10.213.77.12"}, "Aliases": ["sub10"]}
    assert made["HostConfig"]["NetworkMode"] == plan.network.name
    hosts = made["HostConfig"]["ExtraHosts"]
    assert hosts[0] == "main1:10.213.77.2"
    assert [one.split(":")[0] for one in hosts] == ["main1"] + [f"sub{index}" for index in (*range(1, 10), 11)]


GPUS: list[tuple[dict[str, str], tuple[Gpu, ...], str]] = [
    ({}, (), "void"),
    ({"NVIDIA_VISIBLE_DEVICES": "all"}, (), "void"),
    ({"NVIDIA_VISIBLE_DEVICES": "all"}, (Gpu("GPU-a"),), "GPU-a"),
    ({}, (Gpu("GPU-a"), Gpu("MIG-b")), "GPU-a,MIG-b"),
]


@pytest.mark.parametrize(("environment", "gpus", "seen"), GPUS)
def test_a_container_sees_its_own_gpus_whatever_image_or_user_ask_for(
    environment: dict[str, str], gpus: tuple[Gpu, ...], seen: str
) -> None:
    plan = Shape(environment=environment).plan()
    first = plan.containers[0]
    made = container_body(plan, replace(first, resources=replace(first.resources, gpus=gpus)), AgentSettings())
    assert [text for text in made["Env"] if text.startswith("NVIDIA_")] == [f"NVIDIA_VISIBLE_DEVICES={seen}"]


MPS = AgentSettings(mps="/run/mps")
SHARES: list[tuple[Gpu, list[str]]] = [
    (Gpu("GPU-a", 0.25, 6 << 30), ["ACTIVE_THREAD_PERCENTAGE=25", "PINNED_DEVICE_MEM_LIMIT=0=6144M"]),
    (Gpu("GPU-a", 1 / 3, (8 << 30) + 1), ["ACTIVE_THREAD_PERCENTAGE=33", "PINNED_DEVICE_MEM_LIMIT=0=8192M"]),
    (Gpu("GPU-a", 0.001, 5 << 20), ["ACTIVE_THREAD_PERCENTAGE=1", "PINNED_DEVICE_MEM_LIMIT=0=5M"]),
]


@pytest.mark.parametrize(("gpu", "limits"), SHARES)
def test_a_part_of_a_gpu_has_the_limits_of_mps_whatever_image_or_user_ask_for(gpu: Gpu, limits: list[str]) -> None:
    plan = Shape(environment={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100", "CUDA_MPS_PIPE_DIRECTORY": "/mine"}).plan()
    first = plan.containers[0]
    made = container_body(plan, replace(first, resources=replace(first.resources, gpus=(gpu,))), MPS)
    found = sorted(text.removeprefix("CUDA_MPS_") for text in made["Env"] if text.startswith("CUDA_MPS_"))
    assert found == sorted([*limits, "PIPE_DIRECTORY=/run/mps"])
    assert made["HostConfig"]["DeviceRequests"][0]["DeviceIDs"] == ["GPU-a"]
    assert made["HostConfig"]["Mounts"][-1] == {
        "Type": "bind",
        "Source": "/run/mps",
        "Target": "/run/mps",
        "ReadOnly": True,
    }


@pytest.mark.parametrize("gpu", [Gpu("GPU-a"), Gpu("GPU-a", 0.25), Gpu("MIG-a", 0.4286, 20 << 30)])
def test_a_gpu_that_mps_does_not_limit_has_nothing_of_it(gpu: Gpu) -> None:
    plan = Shape().plan()
    first = plan.containers[0]
    made = container_body(plan, replace(first, resources=replace(first.resources, gpus=(gpu,))), MPS)
    assert not [text for text in made["Env"] if text.startswith("CUDA_")]
    assert f"NVIDIA_VISIBLE_DEVICES={gpu.id}" in made["Env"]
    assert [mount for mount in made["HostConfig"]["Mounts"] if mount["Source"] == "/run/mps"] == []


PATHS = [
    ({}, "", DEFAULT_PATH),
    ({}, "/image/bin", "/image/bin"),
    ({"PATH": "/mine"}, "/image/bin", "/mine"),
    ({"PATH": "/mine:$PATH"}, "/image/bin", "/mine:/image/bin"),
    ({"PATH": "${PATH}:/mine"}, "", f"{DEFAULT_PATH}:/mine"),
    ({"PATH": "$PATHS/bin"}, "/image/bin", "$PATHS/bin"),
]


@pytest.mark.parametrize(("environment", "image", "path"), PATHS)
def test_path(environment: dict[str, str], image: str, path: str) -> None:
    made = body(Shape(environment=environment), settings=AgentSettings(image_environment={"PATH": image}))
    assert [text for text in made["Env"] if text.startswith("PATH=")] == [
        f"PATH=/opt/cluster-compute/unprivileged:{path}:/opt/cluster-compute/bin"
    ]


def test_any_variable_can_extend_the_one_of_its_image() -> None:
    image = {"LD_LIBRARY_PATH": "/image/lib", "CFLAGS": "-O2"}
    given = {
        "LD_LIBRARY_PATH": "/mine:$LD_LIBRARY_PATH",
        "CFLAGS": "${CFLAGS} -g",
        "MANPATH": "/man:$MANPATH",
        "A": "$CFLAGS",
    }
    made = body(Shape(environment=given), settings=AgentSettings(image_environment=image))["Env"]
    for line in ("LD_LIBRARY_PATH=/mine:/image/lib", "CFLAGS=-O2 -g", "MANPATH=/man:", "A=$CFLAGS"):
        assert line in made


RESOURCES = [
    (
        Resources(1500, 64 * MIB, 16 * MIB),
        {"Memory": 64 * MIB, "MemorySwap": 64 * MIB, "ShmSize": 16 * MIB, "NanoCpus": 1_500_000_000},
    ),
    (Resources(2000, 64 * MIB, 0, (), "2,3"), {"Memory": 64 * MIB, "MemorySwap": 64 * MIB, "CpusetCpus": "2,3"}),
    (
        Resources(1000, 64 * MIB, 0, (Gpu("GPU-1"), Gpu("GPU-2"))),
        {
            "Memory": 64 * MIB,
            "MemorySwap": 64 * MIB,
            "NanoCpus": 1_000_000_000,
            "DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ["GPU-1", "GPU-2"], "Capabilities": [["gpu"]]}],
        },
    ),
]
AMOUNTS = {"Memory", "MemorySwap", "ShmSize", "NanoCpus", "CpusetCpus", "DeviceRequests"}


@pytest.mark.parametrize(("resources", "expected"), RESOURCES)
def test_resources(resources: Resources, expected: dict[str, Any]) -> None:
    host = body(Shape(resources=resources))["HostConfig"]
    assert {key: host[key] for key in AMOUNTS & set(host)} == expected


LIMITS = [
    (EngineLimits(), []),
    (EngineLimits(0, 4096), [{"Name": "memlock", "Soft": 4096, "Hard": 4096}]),
    (
        EngineLimits(1048576, -1),
        [{"Name": "nofile", "Soft": 1048576, "Hard": 1048576}, {"Name": "memlock", "Soft": -1, "Hard": -1}],
    ),
]


@pytest.mark.parametrize(("limits", "expected"), LIMITS)
def test_limits(limits: EngineLimits, expected: list[dict[str, Any]]) -> None:
    assert body(settings=AgentSettings(limits=limits))["HostConfig"]["Ulimits"] == expected


def test_a_crash_leaves_no_file_with_secrets() -> None:
    plan = Shape().plan()
    session = replace(plan.session, secrets=(Secret("token"),))
    made = container_body(replace(plan, session=session), plan.containers[0], AgentSettings(limits=EngineLimits(1024)))
    expected = [{"Name": "nofile", "Soft": 1024, "Hard": 1024}, {"Name": "core", "Soft": 0, "Hard": 0}]
    assert made["HostConfig"]["Ulimits"] == expected


def test_capabilities_that_training_does_not_need_are_dropped() -> None:
    assert body()["HostConfig"]["CapDrop"] == ["MKNOD", "SETFCAP", "NET_RAW"]


def bounded(log_driver: str = "", **changes: Any) -> dict[str, Any]:
    plan = Shape().plan()
    plan = replace(plan, session=replace(plan.session, **changes))
    config: dict[str, Any] = container_body(plan, plan.main, AgentSettings(log_driver=log_driver))["HostConfig"]
    return config


def test_a_session_is_bounded_by_default() -> None:
    config = bounded("json-file")
    assert config["PidsLimit"] == 32768
    assert config["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "104857600", "max-file": "3"}}
    assert not {"StorageOpt", "SecurityOpt"} & set(config)


@pytest.mark.parametrize("driver", ["journald", "syslog", ""])
def test_logs_go_where_the_agent_sends_them(driver: str) -> None:
    assert "LogConfig" not in bounded(driver)


def test_bounds_that_a_session_asks_for() -> None:
    config = bounded("local", pids=64, log_size=65536, log_files=1, disk=1 << 30, no_new_privileges=True)
    assert config["PidsLimit"] == 64
    assert config["LogConfig"] == {"Type": "local", "Config": {"max-size": "65536", "max-file": "1"}}
    assert config["StorageOpt"] == {"size": "1073741824"}
    assert config["SecurityOpt"] == ["no-new-privileges"]


def test_ports_on_main_only() -> None:
    ports = (Port("ssh", 22, "127.0.0.1", 30000), Port("app", 8888, "0.0.0.0", 30001))
    main = body(Shape(ports=ports))
    assert main["ExposedPorts"] == {"22/tcp": {}, "8888/tcp": {}}
    assert main["HostConfig"]["PortBindings"]["22/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": "30000"}]
    assert body(Shape(ports=ports), rank=1)["HostConfig"]["PortBindings"] == {}
    both = body(Shape(ports=(Port("ssh", 22, "::", 30000),)))["HostConfig"]["PortBindings"]["22/tcp"]
    assert both == [{"HostIp": "0.0.0.0", "HostPort": "30000"}, {"HostIp": "::", "HostPort": "30000"}]


def test_mounts() -> None:
    nfs = Mount("tester.nfs", "/nfs", "volume", "rw", {"type": "nfs", "device": ":/x"})
    shape = Shape(mounts=(Mount("/data", "/data", mode="ro"), Mount("mine", "/mine", "volume"), nfs))
    plan = shape.plan()
    runtime, data, mine, share = container_body(plan, plan.main, AgentSettings(runtime="runtime"))["HostConfig"][
        "Mounts"
    ]
    assert (runtime["Source"], runtime["Target"], runtime["ReadOnly"]) == ("runtime", "/opt/cluster-compute", True)
    assert data == {"Type": "bind", "Source": "/data", "Target": "/data", "ReadOnly": True}
    assert "VolumeOptions" not in mine
    assert share["VolumeOptions"]["DriverConfig"] == {"Name": "local", "Options": dict(nfs.options)}
    assert share["VolumeOptions"]["Labels"] == plan.network.labels


def test_bridge() -> None:
    made = network_body(Shape().plan().network)
    assert made["driver"] == "bridge"
    assert made["attachable"] is False
    assert made["options"].pop("com.docker.network.bridge.enable_icc") == "true"
    (bridge,) = made["options"].values()
    assert re.fullmatch("cc-[0-9a-f]{12}", bridge), (
        "at most 15 characters, and the rules of the agents know it by its beginning"
    )
    assert made["ipam"]["Config"] == [
        {"Subnet": "10.213.77.0/24", "Gateway": "10.213.77.1", "IPRange": "10.213.77.128/25"}
    ]


def test_each_session_has_a_bridge_of_its_own() -> None:
    network = Shape().plan().network
    later = replace(network, labels={**network.labels, label.SESSION: "another"})
    names = [network_body(one)["options"]["com.docker.network.bridge.name"] for one in (network, network, later)]
    assert names[0] == names[1] != names[2]


def test_overlay() -> None:
    network = replace(Shape(driver="overlay", mtu=1450).plan().network, encrypted=True, gateway="")
    made = network_body(network)
    assert made["driver"] == "overlay"
    assert made["attachable"] is True
    assert made["options"] == {"com.docker.network.driver.mtu": "1500", "encrypted": ""}
    assert "Gateway" not in made["ipam"]["Config"][0]


def test_the_plans_labels_are_written_as_they_are() -> None:
    plan = with_container(Shape().plan(), 0, labels={"a": "b"})
    assert container_body(plan, plan.main, AgentSettings())["Labels"] == {"a": "b"}
