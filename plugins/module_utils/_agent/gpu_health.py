# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of NVIDIA GPUs: green, yellow or red, with reasons. No session is placed on a red GPU.

What counts as a fault is NVIDIA's own advice on when a GPU needs a reset or a replacement.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple
from xml.etree import ElementTree

from .._shared.documents.report import GREEN, RED, YELLOW, GpuHealth
from .._shared.paths import read
from .engine.device_nodes import nvidia_only
from .nvidia import Log, Seen, listed_gpus, node_text

Fault = Tuple[str, str]
# Domain, bus and device on the PCI bus.
Bus = Tuple[int, int, int]


class _Rule(NamedTuple):
    """A fault: where in the log, the values that are one, how grave it is, and the reason with the value."""

    path: str
    values: str
    state: str
    reason: str


# What a driver writes for a value that the GPU or the driver does not have.
_UNREPORTED = ("", "N/A", "[N/A]", "Not Supported", "Requested functionality has been deprecated")
_YES, _COUNT, _SLOW = "Yes", "[1-9][0-9]*", "Active"
# https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/ (row remapping, recovery action: new work may start on a GPU that waits for a
# remapping), https://docs.nvidia.com/deploy/dynamic-page-retirement/, and the manual page of nvidia-smi.
_RULES = (
    _Rule("gpu_recovery_action", "(?!None$).+", RED, "the driver asks for the recovery action {}"),
    _Rule("gpu_reset_status/reset_required", _YES, RED, "it must be reset"),
    _Rule("gpu_reset_status/drain_and_reset_recommended", _YES, RED, "it must be drained and reset"),
    _Rule("retired_pages/pending_blacklist", _YES, RED, "a page of its memory is to be retired at its next reset"),
    _Rule("retired_pages/pending_retirement", _YES, RED, "a page of its memory is to be retired at its next reset"),
    _Rule("remapped_rows/remapped_row_failure", _YES, RED, "a row of its memory could not be remapped"),
    _Rule("remapped_rows/remapped_row_pending", _YES, YELLOW, "a row of its memory is remapped at its next reset"),
    _Rule("ecc_errors/aggregate/sram_threshold_exceeded", _YES, RED, "its SRAM has more errors than it may have"),
    _Rule("ecc_errors/unrepairable_memory", _YES, RED, "its memory cannot be repaired"),
    _Rule("ecc_errors/channel_repair_pending", _YES, YELLOW, "its memory is repaired at its next reset"),
    _Rule("ecc_errors/tpc_repair_pending", _YES, YELLOW, "its processors are repaired at its next reset"),
    _Rule("ecc_errors/volatile/dram_uncorrectable", _COUNT, YELLOW, "uncorrectable errors of DRAM: {}"),
    _Rule("ecc_errors/volatile/sram_uncorrectable", _COUNT, YELLOW, "uncorrectable errors of SRAM: {}"),
    _Rule("ecc_errors/volatile/sram_uncorrectable_parity", _COUNT, YELLOW, "uncorrectable parity errors of SRAM: {}"),
    _Rule("ecc_errors/volatile/sram_uncorrectable_secded", _COUNT, YELLOW, "uncorrectable SECDED errors of SRAM: {}"),
    _Rule("fabric/state", "(?!Completed$).+", RED, "the fabric manager has not set up its NVLink (state {})"),
    _Rule("fabric/status", "(?!Success$).+", RED, "the fabric manager could not set up its NVLink (status {})"),
    _Rule("fabric/health/summary", "Unhealthy", RED, "its NVLink fabric is unhealthy"),
    _Rule("fabric/health/bandwidth", "Degraded", YELLOW, "its NVLink fabric has less bandwidth"),
)
# Older drivers have "throttle" in place of "event" in both names.
_CLOCKS = "clocks_{0}_reasons/clocks_{0}_reason_"
_SLOWDOWNS = (
    _Rule("hw_thermal_slowdown", _SLOW, RED, "the hardware slows it down: too hot"),
    _Rule("hw_power_brake_slowdown", _SLOW, RED, "the hardware slows it down: its power supply brakes it"),
    _Rule("hw_slowdown", _SLOW, RED, "the hardware slows it down"),
    _Rule("sw_thermal_slowdown", _SLOW, YELLOW, "the driver slows it down: too hot"),
)
_MODES = (("ecc_mode", "ecc", "ECC"), ("mig_mode", "mig", "MIG"))
_MIG_MODE = "mig_mode/current_mig"
_DIVIDED: Fault = (RED, "MIG is enabled: only its MIG devices can be used")
_ABSENT: Fault = (RED, "nvidia-smi -q -x does not list it")
# Texts in place of values, in any part of the log.
_GONE = re.compile(r"\[?(GPU requires reset|GPU is lost)\]?")

# Events of the hardware whose remedy is a reset, a restart of the host, or a replacement; and events that programs cause:
# https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
_FATAL = frozenset({46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143})
_OF_PROGRAMS = frozenset({8, 13, 31, 32, 43, 45, 68, 69, 109})
# Only messages of the kernel itself have a priority below 8: https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_XID = re.compile(
    rb"^[0-7],[^;\n]*;NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})[^)]{0,4}\): ([0-9]{1,4})\b", re.M
)
_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})")
_INFOROM = re.compile(r"infoROM is corrupted at gpu ([0-9a-fA-F:.]{1,20})", re.I)
# The kernel's log is not longer.
_MOST_LOG = 8 << 20
# The first 15 characters of nv-fabricmanager, as the kernel names the process.
_FABRIC_MANAGER = "nv-fabricmanage"


def gpu_health(
    devices: Sequence[str], seen: Seen | None, kmsg: str = "/dev/kmsg", proc: str = "/proc"
) -> List[GpuHealth]:
    """The health of each NVIDIA GPU among the devices; nothing on a host without nvidia-smi, whose GPUs are not checked."""
    ours = nvidia_only(devices)
    if seen is None:
        return []
    if seen.log.fault:
        return [GpuHealth(device, RED, (seen.log.fault,)) for device in ours]
    # A MIG device is as healthy as its GPU, which no program can use as a whole.
    parents = {part: gpu for gpu, parts in listed_gpus(seen.listed) for part in parts}
    xids, unmanaged = read_xids(kmsg), has_no_fabric_manager(proc)
    found: Dict[str, List[Fault]] = {}
    for number, gpu in enumerate(seen.log.gpus):
        faults, uuid = _faults(gpu, seen.log, xids, unmanaged), node_text(gpu, "uuid")
        found.update((part, faults) for part, parent in parents.items() if parent == uuid)
        found[uuid] = found[str(number)] = faults + ([_DIVIDED] if node_text(gpu, _MIG_MODE) == "Enabled" else [])
    return [_verdict(device, found.get(device, [_ABSENT])) for device in ours]


def _verdict(device: str, faults: Sequence[Fault]) -> GpuHealth:
    state = next((level for level in (RED, YELLOW) if level in [fault[0] for fault in faults]), GREEN)
    reasons = tuple(dict.fromkeys(reason for level in (RED, YELLOW) for of, reason in faults if of == level))
    return GpuHealth(device, state, reasons)


def read_xids(kmsg: str = "/dev/kmsg") -> Dict[Bus, List[int]]:
    """The XIDs of each GPU in the kernel's log; none if this process may not read it."""
    found: Dict[Bus, List[int]] = {}
    for place, code in _XID.findall(_kernel_log(kmsg)):
        found.setdefault(_bus(place.decode()), []).append(int(code))
    return found


def _kernel_log(kmsg: str) -> bytes:
    """The kernel's log: each read gives one message, and none waits for the next."""
    content = bytearray()
    try:
        file = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        while len(content) < _MOST_LOG:
            try:
                part = os.read(file, 1 << 14)
            except BrokenPipeError:  # the kernel has overwritten the next message
                continue
            if not part:
                break
            content += part
    except OSError:  # BlockingIOError: no more messages
        pass
    finally:
        os.close(file)
    return bytes(content)


def has_no_fabric_manager(proc: str = "/proc") -> bool:
    """Return whether this host has NVSwitches of its own and no process that manages them."""
    if not glob.glob(f"{proc}/driver/nvidia-nvswitch/devices/*"):
        return False
    return not any(read(name).strip() == _FABRIC_MANAGER for name in glob.glob(f"{proc}/[0-9]*/comm"))


def _faults(gpu: ElementTree.Element, log: Log, xids: Mapping[Bus, Sequence[int]], unmanaged: bool) -> List[Fault]:
    gone = [found.group(1) for found in (_GONE.fullmatch((part.text or "").strip()) for part in gpu.iter()) if found]
    faults = [(RED, f"nvidia-smi says {text}") for text in gone[:1]]
    faults += [(rule.state, rule.reason.format(value)) for rule in _RULES for value in _values(gpu, rule)]
    faults += _slowdowns(gpu) + _pending_modes(gpu)
    place = _bus(gpu.get("id") or "")
    if any(_bus(found) == place for found in _INFOROM.findall(log.beside)):
        faults.append((YELLOW, "its infoROM is corrupted"))
    if unmanaged and node_text(gpu, "fabric/state") in _UNREPORTED:
        faults.append((RED, "the host has NVSwitches, and no fabric manager runs"))
    return faults + _events(xids.get(place, ()), node_text(gpu, "gpu_recovery_action") not in _UNREPORTED)


def _values(gpu: ElementTree.Element, rule: _Rule) -> List[str]:
    """The value of the rule's path if it is a fault."""
    value = node_text(gpu, rule.path)
    return [value] if value not in _UNREPORTED and re.fullmatch(rule.values, value) else []


def _slowdowns(gpu: ElementTree.Element) -> List[Fault]:
    """The first reason why the GPU is slower than it was set to be: a cause comes before that there is one."""
    for rule in _SLOWDOWNS:
        paths = [_CLOCKS.format(word) + rule.path for word in ("event", "throttle")]
        if any(_values(gpu, rule._replace(path=path)) for path in paths):
            return [(rule.state, rule.reason)]
    return []


def _pending_modes(gpu: ElementTree.Element) -> List[Fault]:
    found = []
    for folder, mode, name in _MODES:
        now, then = (node_text(gpu, f"{folder}/{when}_{mode}") for when in ("current", "pending"))
        if now != then and now not in _UNREPORTED and then not in _UNREPORTED:
            found.append((YELLOW, f"{name} is {now}, and {then} after its next reset"))
    return found


def _events(codes: Sequence[int], says_recovery: bool) -> List[Fault]:
    """The faults that the kernel has logged. A driver that says whether the GPU must recover knows more than its old messages."""
    shown = [code for code in dict.fromkeys(codes) if code not in _OF_PROGRAMS]
    return [
        (RED if code in _FATAL and not says_recovery else YELLOW, "XID %d since the start of the host" % code)
        for code in shown[:8]
    ]


def _bus(text: str) -> Bus:
    """
    >>> _bus("00000000:3B:00.0") == _bus("0000:3b:00")
    True
    """
    found = _BUS.match(text)
    return (int(found.group(1), 16), int(found.group(2), 16), int(found.group(3), 16)) if found else (-1, -1, -1)
