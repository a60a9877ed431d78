# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything on an engine that has the labels of one owner."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError, NotFound

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, retry_until

LABEL = "cluster.compute.session"
PATIENCE = 30  # seconds for a removal that the engine refuses


@dataclass(frozen=True)
class OwnObjects:
    """The containers, networks and volumes of an owner, in any state."""

    client: docker.APIClient
    owner: str

    def found(self, name: str = "") -> dict[str, str]:
        """All of them, or those of a single session: containers with start times, networks, volumes."""
        own = {"label": [f"{LABEL}.owner={self.owner}"] + ([f"{LABEL}.name={name}"] if name else [])}
        found = {}
        for item in self.client.containers(all=True, filters=own):
            inspected = self.client.inspect_container(item["Id"])
            found[f"container {inspected['Name']}"] = f"{item['Id']} {inspected['State']['StartedAt']}"
        found.update({f"network {item['Name']}": item["Id"] for item in self.client.networks(filters=own)})
        found.update(
            {f"volume {item['Name']}": item["Mountpoint"] for item in self.client.volumes(filters=own)["Volumes"] or []}
        )
        return found

    def remove(self) -> None:
        """Remove all of them."""
        own = {"label": f"{LABEL}.owner={self.owner}"}
        found = self.client.containers(all=True, filters=own)
        with ThreadPoolExecutor(4) as threads:
            list(
                threads.map(
                    lambda item: self._remove(self.client.remove_container, item["Id"], force=True, v=True), found
                )
            )
        for item in self.client.networks(filters=own):
            self._remove(self.client.remove_network, item["Id"])
        for item in self.client.volumes(filters=own)["Volumes"] or []:
            self._remove(self.client.remove_volume, item["Name"])

    @staticmethod
    def _remove(remove: Callable[..., Any], name: str, **options: Any) -> None:
        """Remove an object; a missing object is no error. An engine refuses for a moment to remove what is in use."""
        with suppress(NotFound):
            retry_until(lambda: remove(name, **options), _is_refusal, deadline_in(PATIENCE))


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, APIError) and not isinstance(error, NotFound)
