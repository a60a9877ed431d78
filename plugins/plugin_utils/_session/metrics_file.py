# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file with the metrics of sessions and agents."""

from __future__ import annotations

from typing import List

from ...module_utils._shared.codec import Json
from ...module_utils._shared.names import ALL_OWNERS
from .._hosts.conductor import Play
from .._hosts.files import write
from .._output.metrics import metrics_text
from .reports import read_list


def write_metrics(play: Play, path: str, agents: List[Json]) -> bool:
    """Write the metrics of these agents and of the sessions of all owners, whatever a list shows; whether the file changes."""
    return write(path, metrics_text(read_list(play, agents, {}, ALL_OWNERS)), 0o644, check=play.check)
