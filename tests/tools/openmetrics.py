# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A strict reader of metrics, for tests: the part of OpenMetrics that a file of gauges may contain.

tests/large/test_prometheus.py reads the same files with Prometheus itself.
"""

from __future__ import annotations

import re

Labels = tuple[tuple[str, str], ...]
_HELP = re.compile(r"# HELP ([a-z_]+) (\S[^\\\n]*)")
_TYPE = re.compile(r"# TYPE ([a-z_]+) gauge")
_SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,(?=[a-z])|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parsed(text: str) -> dict[str, dict[Labels, float]]:
    """The series of each metric. Raises ValueError for what no reader of OpenMetrics has to accept."""
    *lines, end, empty = text.split("\n")
    if (end, empty) != ("# EOF", ""):
        raise ValueError("the end is missing")
    found: dict[str, dict[Labels, float]] = {}
    expected, name = "help", ""
    for line in lines:
        if found_help := _HELP.fullmatch(line):
            if expected == "type" or found_help[1] in found:
                raise ValueError(f"a metric is described twice, or the type is missing: {line}")
            name, expected = found_help[1], "type"
        elif expected == "type":
            if (found_type := _TYPE.fullmatch(line)) is None or found_type[1] != name:
                raise ValueError(f"no type: {line}")
            found[name], expected = {}, "sample"
        else:
            labels, value = _sample(line, name)
            if labels in found[name]:
                raise ValueError(f"twice: {line}")
            found[name][labels] = value
    return found


def _sample(line: str, name: str) -> tuple[Labels, float]:
    sample = _SAMPLE.fullmatch(line)
    if sample is None or sample[1] != name:
        raise ValueError(f"no sample of {name}: {line}")
    given = sample[2] or ""
    pairs = list(_LABEL.finditer(given))
    if "".join(pair[0] for pair in pairs) != given:
        raise ValueError(f"wrong labels: {line}")
    labels = tuple((pair[1], re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], pair[2])) for pair in pairs)
    return labels, float(sample[3])
