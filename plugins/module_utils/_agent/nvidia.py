# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA's program ``nvidia-smi`` on an agent: its answers within a time, and its log of all GPUs as XML, read strictly."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Tuple
from xml.etree import ElementTree

from .._shared.constants import MIG_DEVICE
from .._shared.documents.examination import NvLinks
from .._shared.errors import escape_control
from .engine.device_nodes import nvidia_only

# Seconds that nvidia-smi may take: it initializes each GPU that nothing has used since the start of the host.
PATIENCE = 30
_TOOLKIT = 10
# Bytes that are read of an answer: a GPU has 130 kB, most of them supported clocks.
_MOST = 16 << 20
_UUID = re.compile(r"GPU-[0-9A-Za-z-]{1,64}")
_LISTED = re.compile(r"^[ \t]*(GPU|MIG) +(\S+).*\(UUID: ((?:GPU|MIG)-[0-9A-Za-z./-]+)\)", re.MULTILINE)
_GPU = re.compile("GPU[0-9]{1,3}")
# A MIG device with all slices of its instance. A part of an instance, as 1c.3g.20gb, shares its memory with the others.
_PROFILE = re.compile(r"([1-9])g\.[0-9]+gb\S*")
# How many slices a GPU has: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-gpus.html
_SLICES, _FEWER_SLICES = 7, {r"\bA30\b": 4, r"\bRTX PRO 6000\b": 4, r"\bRTX PRO (5000|4500)\b": 2}
_END = "</nvidia_smi_log>"
# The program's exit code if nothing but the information memory of a device is faulty. Its log is complete then.
_INFOROM = 14


@dataclass(frozen=True)
class SmiOutput:
    """An exit code and the output. The code is -1 without an end, and the output then says why."""

    code: int
    text: str


@dataclass(frozen=True)
class Log:
    """The parsed output of ``nvidia-smi -q -x``, and its standard error."""

    driver: str = ""
    gpus: Tuple[ElementTree.Element, ...] = ()
    beside: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Seen:
    """The output of nvidia-smi: its log, and its list if there are MIG devices, which not every log names."""

    log: Log = Log()
    listed: str = ""


def program(name: str = "nvidia-smi") -> str:
    """The path of a program of NVIDIA; empty if this host does not have it."""
    return shutil.which(name) or shutil.which("/usr/bin/" + name) or ""


def run_smi(*arguments: str, patience: float = PATIENCE, name: str = "nvidia-smi") -> SmiOutput:
    """Run a program. A driver can keep a process that no signal ends, so this waits for it no longer than ``patience``."""
    if not program(name):
        return SmiOutput(-1, f"{name} is missing")
    try:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [program(name), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            if not _ends(process, patience):
                return SmiOutput(-1, "%s does not answer in %d s" % (name, patience))
            output.seek(0)
            return SmiOutput(process.returncode, output.read(_MOST).decode("utf-8", "replace"))
    except OSError as error:
        return SmiOutput(-1, f"{name} cannot be started ({error.strerror})")


def _ends(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Return whether the process ends in time. It is killed if it does not."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
        return True
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return False


def output_of(*arguments: str, patience: float = PATIENCE) -> str:
    """The output of nvidia-smi; empty if it is missing, fails or does not end."""
    answer = run_smi(*arguments, patience=patience)
    return "" if answer.code else answer.text


def listed_gpus(text: str) -> List[Tuple[str, List[str]]]:
    """The UUID of each GPU in the output of ``nvidia-smi -L``, and the UUIDs of its MIG devices.

    >>> listed_gpus("GPU 0: A100 (UUID: GPU-1)\\n  MIG 1g.5gb Device 0: (UUID: MIG-2)\\n")
    [('GPU-1', ['MIG-2'])]
    """
    found: List[Tuple[str, List[str]]] = []
    for kind, _name, uuid in _LISTED.findall(text):
        if kind == "GPU":
            found.append((uuid, []))
        elif found:
            found[-1][1].append(uuid)
    return found


def nvlinks(text: str) -> NvLinks:
    """The number of GPUs in the output of ``nvidia-smi topo -m``, and of pairs of them that NVLinks connect (NV and their number)."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).split() for line in text.splitlines()]
    head = next((line for line in lines if line[:1] == ["GPU0"]), [])
    gpus = [name for name in head if _GPU.fullmatch(name)]
    rows = (
        [line[1 : len(gpus) + 1] for line in lines[lines.index(head) + 1 :] if line[:1] and line[0] in gpus]
        if head
        else []
    )
    linked = sum(1 for number, row in enumerate(rows) for cell in row[:number] if re.fullmatch("NV[0-9]+", cell))
    return NvLinks(len(gpus), linked)


def look(devices: Sequence[str], asked: Callable[..., SmiOutput] = run_smi) -> Seen | None:
    """Return what nvidia-smi says, if NVIDIA GPUs are among the devices and this host has the program."""
    ours = nvidia_only(devices)
    if not ours or (asked is run_smi and not program()):
        return None
    log = parse_log(asked("-q", "-x"))
    has_mig = not log.fault and any(device.startswith(MIG_DEVICE) for device in ours)
    return Seen(log, asked("-L").text if has_mig else "")


def sizes(seen: Seen) -> Dict[str, Tuple[float, int]]:
    """The part of a GPU that each device is, and the bytes of its memory; no MIG device that shares its memory with others.

    A log has the MIG devices of a GPU in the order of the list.
    """
    found = {node_text(gpu, "uuid"): (1.0, _memory(gpu)) for gpu in seen.log.gpus}
    known = {node_text(gpu, "uuid"): gpu for gpu in seen.log.gpus}
    profiles = {uuid: name for _kind, name, uuid in _LISTED.findall(seen.listed)}
    for gpu, parts in listed_gpus(seen.listed):
        devices = known[gpu].findall("mig_devices/mig_device") if gpu in known else []
        if len(devices) != len(parts):
            continue
        model = node_text(known[gpu], "product_name")
        slices = next((most for name, most in _FEWER_SLICES.items() if re.search(name, model)), _SLICES)
        for part, device in zip(parts, devices):
            profile = _PROFILE.fullmatch(profiles[part])
            if profile and _memory(device):
                found[part] = (min(1.0, round(int(profile.group(1)) / slices, 4)), _memory(device))
    return found


def _memory(device: ElementTree.Element) -> int:
    total = re.fullmatch("([0-9]{1,9}) MiB", node_text(device, "fb_memory_usage/total"))
    return int(total.group(1)) << 20 if total else 0


def toolkit_version() -> str:
    """The version of the NVIDIA Container Toolkit, as ``nvidia-ctk --version`` writes it in its first line; empty without it."""
    answer = run_smi("--version", patience=_TOOLKIT, name="nvidia-ctk")
    found = re.search(r"version v?([0-9][0-9A-Za-z.+~-]{0,40})", answer.text)
    return found.group(1) if found and not answer.code else ""


def parse_log(answer: SmiOutput) -> Log:
    """The log in an answer. A log that is not what the program writes is a fault, and nothing of it counts."""
    if answer.code not in (0, _INFOROM):
        return Log(fault=_failure(answer))
    text, end, beside = answer.text.partition(_END)
    # An entity can grow without bound, and the program writes none.
    if not end or "<!ENTITY" in text:
        return Log(fault="nvidia-smi -q -x wrote no complete log")
    try:
        root = ElementTree.fromstring(text + end)
    except (ElementTree.ParseError, ValueError):
        return Log(fault="nvidia-smi -q -x wrote no XML")
    gpus = tuple(root.findall("gpu"))
    uuids = [node_text(gpu, "uuid") for gpu in gpus]
    if root.tag != "nvidia_smi_log" or len(set(uuids)) < len(uuids) or not all(map(_UUID.fullmatch, uuids)):
        return Log(fault="nvidia-smi -q -x wrote a log without a UUID for each GPU")
    return Log(node_text(root, "driver_version"), gpus, beside)


def node_text(element: ElementTree.Element, path: str) -> str:
    """The text at a path, short and on one line; empty if there is none."""
    return first_line(element.findtext(path) or "")


def first_line(text: str) -> str:
    """The text as a part of a message.

    >>> first_line(" GPU\\n requires reset ")
    'GPU requires reset'
    """
    return escape_control(" ".join(text.split()))[:120]


def _failure(answer: SmiOutput) -> str:
    if answer.code == -1:
        return answer.text
    said = first_line(answer.text)
    return "nvidia-smi -q -x failed with exit code %d%s" % (answer.code, f": {said}" if said else "")
