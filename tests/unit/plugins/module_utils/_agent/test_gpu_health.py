# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of GPUs from logs of nvidia-smi, which ``nvidia_smi/README.md`` describes, and from messages of the kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hostile import Choices, changed_bytes, fuzzed

from ansible_collections.cluster.compute.plugins.module_utils._agent import gpu_health, nvidia
from ansible_collections.cluster.compute.plugins.module_utils._agent.nvidia import SmiOutput
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    GREEN,
    RED,
    YELLOW,
    GpuHealth,
)

LOGS = {path.stem: path.read_text() for path in (Path(__file__).parent / "nvidia_smi").glob("*.xml")}
T4 = "GPU-4c1f0f2e-6f0a-4b57-9a11-0a44c9d01e10"
A100 = ("GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0", "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f")
MIG = ("MIG-c7384736-a75d-5afc-978f-d2f1294409fd", "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d")
H100 = ("GPU-0d6a3f0b-17c3-4b2f-8a3e-2f1be0a45c01", "GPU-91b6c7d8-5e21-4f70-b0c9-6d3a8e7f1202")
H100_ALONE = "GPU-71c5e0d4-2a96-4f3b-8d07-b6a9e1c35f42"
H200 = "GPU-2d6f0a51-8b3c-4e97-a1d4-93c7e05b6f28"
RTX = "GPU-7f3ad2c5-90e4-41b8-8c6d-b5e1f4027a90"
# As nvidia-smi -L lists them.
LISTED = f"""\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: {A100[0]})
  MIG 3g.20gb     Device  0: (UUID: {MIG[0]})
  MIG 3g.20gb     Device  1: (UUID: {MIG[1]})
GPU 1: NVIDIA A100-SXM4-40GB (UUID: {A100[1]})
"""
DEVICES = {
    "t4": [T4],
    "a100_mig": [*MIG, A100[1]],
    "h100": list(H100),
    "h100_alone": [H100_ALONE],
    "h200": [H200],
    "rtx4090": [RTX],
}
# A message of the kernel, as /dev/kmsg gives it, and a line that belongs to it.
MESSAGE = "6,1234,5678901,-;NVRM: Xid (PCI:{}): {}, pid=77, name=python3, something\n SUBSYSTEM=pci\n"


def with_fault(model: str, path: str, value: str, number: int = 0) -> str:
    """The log of a model in which one GPU has another value at a path."""
    before, *gpus = re.split(r"(?=\t<gpu id=)", LOGS[model])
    start = 0
    for name in path.split("/"):
        start = gpus[number].index(f"<{name}>", start) + len(name) + 2
    end = gpus[number].index("<", start)
    assert gpus[number][start:end] != value
    gpus[number] = gpus[number][:start] + value + gpus[number][end:]
    return before + "".join(gpus)


def checked(model: str, text: str, tmp_path: Path, code: int = 0, kernel: str = "", proc: str = "") -> dict[str, Any]:
    """The state and the reasons of each device that is not green."""
    kmsg = tmp_path / "kmsg"
    kmsg.write_text(kernel)
    answers = {("-q", "-x"): SmiOutput(code, text), ("-L",): SmiOutput(0, LISTED)}
    seen = nvidia.look(DEVICES[model], lambda *asked: answers[asked])
    found = gpu_health.gpu_health(DEVICES[model], seen, str(kmsg), proc or str(tmp_path))
    assert [one.id for one in found] == DEVICES[model]
    assert all(bool(one.reasons) == (one.state != GREEN) for one in found)
    return {one.id: (one.state, *one.reasons) for one in found if one.state != GREEN}


@pytest.mark.parametrize("model", sorted(LOGS))
def test_each_model_without_a_fault_is_green(model: str, tmp_path: Path) -> None:
    assert checked(model, LOGS[model], tmp_path) == {}


def test_a_recorded_fault_of_a_program_leaves_its_gpu_green(tmp_path: Path) -> None:
    kernel = (
        "3,611,217045514,-;NVRM: GPU Board Serial Number: 1650000000000\n"
        "3,612,217045515,-;NVRM: Xid (PCI:0000:00:06): {}, pid=5848, name=share, channel 0x0000000f, intr 00000000. MMU Fault: "
        "ENGINE GRAPHICS GPC4 GPCCLIENT_T1_0 faulted @ 0x0_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n"
    )
    assert checked("h200", LOGS["h200"], tmp_path, kernel=kernel.format(31)) == {}
    assert checked("h200", LOGS["h200"], tmp_path, kernel=kernel.format(63)) == {
        H200: (YELLOW, "XID 63 since the start of the host")
    }


ROWS = "remapped_rows/remapped_row_"
EVENT, THROTTLE = "clocks_event_reasons/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"
PAGE = "a page of its memory is to be retired at its next reset"
FAULTS = [
    ("t4", "retired_pages/pending_retirement", "Yes", {T4: (RED, PAGE)}),
    ("t4", THROTTLE + "hw_thermal_slowdown", "Active", {T4: (RED, "the hardware slows it down: too hot")}),
    ("t4", "ecc_mode/pending_ecc", "Disabled", {T4: (YELLOW, "ECC is Enabled, and Disabled after its next reset")}),
    (
        "a100_mig",
        ROWS + "failure",
        "Yes",
        dict.fromkeys(MIG, (RED, "a row of its memory could not be remapped")),
    ),
    (
        "a100_mig",
        ROWS + "pending",
        "Yes",
        dict.fromkeys(MIG, (YELLOW, "a row of its memory is remapped at its next reset")),
    ),
    ("a100_mig", "gpu_reset_status/reset_required", "Yes", dict.fromkeys(MIG, (RED, "it must be reset"))),
    (
        "h100",
        "gpu_recovery_action",
        "Drain and Reset",
        {H100[0]: (RED, "the driver asks for the recovery action Drain and Reset")},
    ),
    (
        "h100",
        "fabric/state",
        "In Progress",
        {H100[0]: (RED, "the fabric manager has not set up its NVLink (state In Progress)")},
    ),
    (
        "h100",
        "aggregate/sram_threshold_exceeded",
        "Yes",
        {H100[0]: (RED, "its SRAM has more errors than it may have")},
    ),
    ("h100", "volatile/dram_uncorrectable", "2", {H100[0]: (YELLOW, "uncorrectable errors of DRAM: 2")}),
    (
        "h100_alone",
        "gpu_recovery_action",
        "Reset",
        {H100_ALONE: (RED, "the driver asks for the recovery action Reset")},
    ),
    ("h100_alone", EVENT + "hw_thermal_slowdown", "Active", {H100_ALONE: (RED, "the hardware slows it down: too hot")}),
    (
        "h100_alone",
        "aggregate/sram_threshold_exceeded",
        "Yes",
        {H100_ALONE: (RED, "its SRAM has more errors than it may have")},
    ),
    ("h200", ROWS + "failure", "Yes", {H200: (RED, "a row of its memory could not be remapped")}),
    ("h200", ROWS + "pending", "Yes", {H200: (YELLOW, "a row of its memory is remapped at its next reset")}),
    ("h200", "ecc_mode/pending_ecc", "Disabled", {H200: (YELLOW, "ECC is Enabled, and Disabled after its next reset")}),
    (
        "rtx4090",
        EVENT + "hw_power_brake_slowdown",
        "Active",
        {RTX: (RED, "the hardware slows it down: its power supply brakes it")},
    ),
    ("rtx4090", "performance_state", "GPU is lost", {RTX: (RED, "nvidia-smi says GPU is lost")}),
]


@pytest.mark.parametrize(("model", "path", "value", "expected"), FAULTS, ids=[f"{one[0]} {one[1]}" for one in FAULTS])
def test_a_fault_has_its_exact_verdict(
    model: str, path: str, value: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    assert checked(model, with_fault(model, path, value), tmp_path) == expected


def test_the_fault_of_another_gpu_is_its_own(tmp_path: Path) -> None:
    assert list(checked("h100", with_fault("h100", "gpu_recovery_action", "Reset", 1), tmp_path)) == [H100[1]]
    assert list(checked("a100_mig", with_fault("a100_mig", ROWS + "failure", "Yes", 1), tmp_path)) == [A100[1]]


def test_a_gpu_with_mig_is_used_only_through_its_mig_devices() -> None:
    answers = {("-q", "-x"): SmiOutput(0, LOGS["a100_mig"]), ("-L",): SmiOutput(0, LISTED)}
    devices = [A100[0], MIG[0], "0", "1"]
    found = gpu_health.gpu_health(devices, nvidia.look(devices, lambda *asked: answers[asked]), "/x", "/x")
    reason = ("MIG is enabled: only its MIG devices can be used",)
    assert found == [
        GpuHealth(A100[0], RED, reason),
        GpuHealth(MIG[0], GREEN),
        GpuHealth("0", RED, reason),
        GpuHealth("1", GREEN),
    ]


@pytest.mark.parametrize(
    ("model", "bus", "code", "expected"),
    [
        # The driver of a T4 does not say whether it must recover.
        ("t4", "0000:00:1e", 48, {T4: (RED, "XID 48 since the start of the host")}),
        ("t4", "0000:00:1e", 31, {}),
        ("t4", "0000:00:1e", 63, {T4: (YELLOW, "XID 63 since the start of the host")}),
        ("t4", "0000:00:1f", 79, {}),
        ("h100", "0000:1b:00", 95, {H100[0]: (YELLOW, "XID 95 since the start of the host")}),
    ],
)
def test_the_events_that_the_kernel_has_logged(
    model: str, bus: str, code: int, expected: dict[str, Any], tmp_path: Path
) -> None:
    assert checked(model, LOGS[model], tmp_path, kernel=2 * MESSAGE.format(bus, code)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "14,1,2,-;NVRM: Xid (PCI:0000:00:1e): 48, written by a program",
        "6,1,2,-;NVRM: Xid (PCI:[77]: segfault at 0 (PCI:0000:00:1e): 48,",
        " NVRM: Xid (PCI:0000:00:1e): 48, a line of another message",
        "6,1,2,-;audit: NVRM: Xid (PCI:0000:00:1e): 48, within a message",
    ],
)
def test_only_the_driver_logs_events(line: str, tmp_path: Path) -> None:
    assert checked("t4", LOGS["t4"], tmp_path, kernel=line + "\n") == {}


def test_without_the_kernel_log_there_are_no_events(tmp_path: Path) -> None:
    assert gpu_health.read_xids(str(tmp_path / "absent")) == {}


def test_nvswitches_need_a_fabric_manager(tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia-nvswitch/devices/0000:05:00.0").mkdir(parents=True)
    reason = (RED, "the host has NVSwitches, and no fabric manager runs")
    assert checked("a100_mig", LOGS["a100_mig"], tmp_path) == dict.fromkeys(DEVICES["a100_mig"], reason)
    (tmp_path / "77").mkdir()
    (tmp_path / "77/comm").write_text("nv-fabricmanage\n")
    assert checked("a100_mig", LOGS["a100_mig"], tmp_path) == {}


def test_the_driver_of_an_h100_says_more_than_the_list_of_processes(tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia-nvswitch/devices/0000:05:00.0").mkdir(parents=True)
    assert checked("h100", LOGS["h100"], tmp_path) == {}


def test_a_corrupted_inforom_is_that_of_one_gpu(tmp_path: Path) -> None:
    text = LOGS["h100"] + "WARNING: infoROM is corrupted at gpu 0000:43:00.0\n"
    assert checked("h100", text, tmp_path, code=14) == {H100[1]: (YELLOW, "its infoROM is corrupted")}


BOMB = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>'


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (-1, "nvidia-smi does not answer in 30 s", "nvidia-smi does not answer in 30 s"),
        (
            15,
            "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.\n\x1b]0;title\x07",
            "nvidia-smi -q -x failed with exit code 15: Unable to determine the device handle for "
            "GPU0000:3B:00.0: GPU is lost. \\x1b]0;title\\x07",
        ),
        (9, "", "nvidia-smi -q -x failed with exit code 9"),
        (0, LOGS["t4"][:2000], "nvidia-smi -q -x wrote no complete log"),
        (0, BOMB, "nvidia-smi -q -x wrote no complete log"),
        (0, "<nvidia_smi_log><gpu></nvidia_smi_log>", "nvidia-smi -q -x wrote no XML"),
        (0, "<x></nvidia_smi_log>", "nvidia-smi -q -x wrote no XML"),
        (
            0,
            "<nvidia_smi_log><gpu><uuid>GPU-1</uuid></gpu><gpu><uuid>GPU-1</uuid></gpu></nvidia_smi_log>",
            "nvidia-smi -q -x wrote a log without a UUID for each GPU",
        ),
        (0, "<nvidia_smi_log></nvidia_smi_log>", "nvidia-smi -q -x does not list it"),
    ],
)
def test_without_a_log_every_gpu_is_red(code: int, text: str, reason: str, tmp_path: Path) -> None:
    assert checked("h100", text, tmp_path, code) == dict.fromkeys(H100, (RED, reason))


@fuzzed(200)
def test_a_hostile_log_gives_a_verdict(choices: Choices) -> None:
    text = changed_bytes(LOGS["h100"].encode(), choices).decode("utf-8", "replace")
    found = gpu_health.gpu_health(
        H100, nvidia.look(H100, lambda *asked: SmiOutput(0, text)), "/nonexistent", "/nonexistent"
    )
    assert [one.id for one in found] == list(H100)
    assert all("\n" not in reason and len(reason) < 200 for one in found for reason in one.reasons)


def test_a_gpu_may_be_named_by_its_number(tmp_path: Path) -> None:
    text = with_fault("h100", "gpu_recovery_action", "Reset", 1)
    devices = ["1", "0", "AMD-0000:03:00.0"]
    found = gpu_health.gpu_health(devices, nvidia.look(devices, lambda *asked: SmiOutput(0, text)), "/x", str(tmp_path))
    reset = ("the driver asks for the recovery action Reset",)
    assert found == [GpuHealth("1", RED, reset), GpuHealth("0", GREEN)]


def test_a_host_without_nvidia_smi_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia.shutil, "which", lambda _name: None)
    assert gpu_health.gpu_health(["GPU-1"], nvidia.look(["GPU-1"])) == []


def test_a_host_without_nvidia_gpus_is_not_asked() -> None:
    def never(*asked: str) -> SmiOutput:
        raise AssertionError("nvidia-smi takes seconds")

    assert nvidia.look(["AMD-0000:03:00.0"], never) is None


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("echo $*; echo more >&2", SmiOutput(0, "-q -x\nmore\n")),
        ("echo broken; exit 9", SmiOutput(9, "broken\n")),
        ("exec sleep 60", SmiOutput(-1, "nvidia-smi does not answer in 2 s")),
    ],
)
def test_nvidia_smi_may_fail_or_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, answer: SmiOutput
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(nvidia.shutil, "which", lambda _name: str(program))
    assert nvidia.run_smi("-q", "-x", patience=2) == answer
    assert nvidia.output_of("-q", "-x", patience=2) == ("" if answer.code else answer.text)


@pytest.mark.parametrize("model", DEVICES)
def test_a_log_names_the_driver(model: str) -> None:
    assert re.fullmatch("[0-9]+[.][0-9.]+", nvidia.parse_log(SmiOutput(0, LOGS[model])).driver)
