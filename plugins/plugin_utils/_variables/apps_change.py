# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change of the apps of a running session that a command asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from ...module_utils._shared.documents.plan import App
from ...module_utils._shared.planning.request import Request


@dataclass(frozen=True)
class AppsChange:
    """A change of the apps of the running session with this ID. ``publish`` are the apps that get a relay in these ports."""

    session: str
    timeout: int
    apps: Sequence[App] = ()
    publish: Sequence[str] = ()
    restart: Sequence[str] = ()
    remove: Sequence[str] = ()
    ports: str = Request.port_range

    @property
    def names_apps(self) -> bool:
        return bool(self.apps or self.publish or self.restart or self.remove)
