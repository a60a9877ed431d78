# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report entries of a session's containers on one engine."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Sequence

from .._core.documents import Json
from .._core.parallel import run_all
from .client import Engine
from .reports import container_entry, engine_name


def container_entries(engine: Engine, listed: Sequence[Json], parallelism: int) -> List[Json]:
    """Report entries of containers, in their order. Only stopped containers are inspected, for how they have ended."""

    def entry(container: Json) -> Json:
        has_ended = container["State"] not in ("created", "planned", "running")
        inspected = engine.inspect(container["Id"], engine_name(container)) if has_ended else None
        return container_entry(container, inspected)

    return run_all(entry, listed, parallelism)
