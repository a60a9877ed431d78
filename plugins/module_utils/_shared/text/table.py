# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables for a terminal: of environments, of what owners have used, and of what the doctor has found."""

from __future__ import annotations

import csv
import io
import textwrap
from typing import Any, Iterable, List, Optional, Sequence

from ..codec import Json
from ..documents.findings import Finding, Measurement
from ..documents.image import EnvironmentVersion
from ..documents.plan import Gpu
from ..documents.report import Measured
from ..units import show_bytes

# The least width of a last column beside the others; without it, its indentation.
_NARROWEST, _INDENT = 24, "    "
_OF_USAGE = ("month", "kind", "name", "sessions", "cpu_hours", "memory_gib_hours", "gpu_hours")


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], width: int = 0) -> List[str]:
    """Columns as wide as their widest cell. With a ``width``, a last column that is too wide goes on in the next line.

    If the others leave it too little, it is in lines of its own.

    >>> table(("a", "b"), [("long", 1)])
    ['A     B', 'long  1']
    """
    cells = [[name.upper() for name in header]] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    starts = ["".join(f"{cell.ljust(column)}  " for cell, column in zip(row[:-1], widths)) for row in cells]
    room = width - len(starts[0])
    if not width or widths[-1] <= room:
        return [(start + row[-1]).rstrip() for start, row in zip(starts, cells)]
    lines = []
    for start, row in zip(starts, cells):
        if room < _NARROWEST:
            parts = textwrap.wrap(row[-1], width, initial_indent=_INDENT, subsequent_indent=_INDENT)
            lines += [start.rstrip(), *parts]
        else:
            parts = textwrap.wrap(row[-1], room) or [""]
            lines += [((" " * len(start) if number else start) + part).rstrip() for number, part in enumerate(parts)]
    return lines


def environments_table(environments: Sequence[EnvironmentVersion]) -> List[str]:
    """A line for every version of every environment: its apps, the size of its image, and the agents that have it."""
    rows = [
        (
            entry.name,
            entry.version,
            ", ".join(entry.apps) or "-",
            show_bytes(entry.size >> 20 << 20) if entry.agents else "-",
            ", ".join(entry.agents) or "-",
            entry.description,
        )
        for entry in environments
    ]
    return table(("environment", "version", "apps", "size", "agents", "description"), rows)


def presets_table(presets: Sequence[Json]) -> List[str]:
    """A line for every preset: the resources of each container.

    >>> presets_table([{"name": "small", "cpus": 1, "memory": "2g", "gpus": 0}])
    ['PRESET  CPUS  MEMORY  SHM  GPUS', 'small   1     2g      -    0']
    """
    names = ("cpus", "memory", "shm", "gpus")
    rows = [(entry["name"], *(entry.get(name, "-") for name in names)) for entry in presets]
    return table(("preset", *names), rows)


def usage_lines(usage: Sequence[Json], month: str | None = None) -> List[str]:
    if not usage:
        return [f"No session has held anything{f' in {month}' if month else ''}."]
    rows = [
        [f"{part:.1f}" if isinstance(part, float) else part for part in map(entry.get, _OF_USAGE)] for entry in usage
    ]
    return table([column.replace("_", " ") for column in _OF_USAGE], rows)


def usage_csv(usage: Sequence[Json]) -> str:
    """A header and a line for each entry. Names of owners begin with a letter or a digit, so no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _OF_USAGE, lineterminator="\n")
    writer.writeheader()
    writer.writerows(usage)
    return text.getvalue()


def check_lines(findings: Sequence[Finding], pairs: Sequence[Measurement]) -> List[str]:
    """A line for every finding, and a table of the measurements between the agents."""
    rows = [(one.status, one.check, one.where, one.found, one.remedy) for one in findings]
    found = table(("status", "check", "where", "found", "remedy"), rows)
    return [*found, *(["", *_matrix(pairs)] if pairs else ())]


def _matrix(pairs: Sequence[Measurement]) -> List[str]:
    """A row for each agent that sends, and a column for each agent that receives."""
    names = sorted({name for pair in pairs for name in (pair.sender, pair.receiver)})
    cells = {(pair.sender, pair.receiver): pair for pair in pairs}
    rows = [[name] + [_link(cells.get((name, other))) for other in names] for name in names]
    return table(["Mbit/s, ms", *names], rows)


def _link(pair: Measurement | None) -> str:
    """Throughput and latency, with a dash for what was not measured."""
    if pair is None:
        return "-"
    shown = (("%.0f", pair.mbits), ("%.2f", pair.milliseconds))
    return ", ".join("-" if value is None else text % value for text, value in shown)


def gpu_parts(gpus: Sequence[Gpu]) -> List[str]:
    """Return what a container has of each GPU of which it does not have all, and what limits it to that.

    >>> gpu_parts([Gpu("GPU-1", 0.25, 6 << 30)])
    ['SM 25%, 6g memory for each process, enforced by MPS']
    >>> gpu_parts([Gpu("MIG-1", 0.4286, 20 << 30), Gpu("GPU-1", 0.5), Gpu("GPU-2")])
    ['SM 43%, 20g memory, enforced by MIG', '50%, not enforced']
    """
    shown = []
    for gpu in gpus:
        memory = show_bytes(gpu.memory) + " memory" + (" for each process" if gpu.limit == "MPS" else "")
        limits = (
            f"SM {gpu.shares:.0%}, {memory}, enforced by {gpu.limit}"
            if gpu.limit
            else f"{gpu.shares:.0%}, not enforced"
        )
        shown += [limits] if gpu.shares < 1 else []
    return shown


def busy_percents(measured: Iterable[Optional[Measured]]) -> List[int]:
    """The utilization of the GPUs that were measured. A GPU that does not report it, as one of MIG, is left out."""
    return [gpu.percent for each in measured if each for gpu in each.gpus if gpu.percent is not None]


def busy_gpus(measured: Iterable[Optional[Measured]]) -> float | None:
    """Their utilization as a number of GPUs; None if none was measured."""
    percents = busy_percents(measured)
    return sum(percents) / 100 if percents else None
