# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's requests for networks."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, List, Mapping

from .._core.documents import Json
from .connection import Connection, label_filter


class NetworkRequests(Connection):
    """Requests for networks and for the place of a container on a network."""

    def networks(self, session: str = "", everyone: bool = False) -> List[Json]:
        filters = {} if everyone else label_filter(session)
        with self._asking("list its networks") as client:
            return list(client.networks(filters=filters))

    def network(self, identity: str) -> Json | None:
        with self._asking(f"inspect network {identity}") as client:
            found: Json | None = self._or_none(client.inspect_network, identity)
            return found

    def create_network(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a network, and return its ID. The body holds the keyword arguments of the SDK's low-level call."""
        with self._asking(f"create network {name}") as client:
            return str(client.create_network(name, check_duplicate=True, **body)["Id"])

    def remove_network(self, identity: str, name: str = "") -> None:
        with self._asking("remove network %s" % (name or identity)) as client:
            self._or_none(client.remove_network, identity)

    def connect(self, identity: str, network: str, endpoint: Json, subject: str = "") -> None:
        """Connect a container to a network that was created again."""
        with self._asking(f"connect it to network {network}", subject) as client:
            self._or_none(client.disconnect_container_from_network, identity, network, force=True)
            address = (endpoint.get("IPAMConfig") or {}).get("IPv4Address")
            client.connect_container_to_network(
                identity, network, ipv4_address=address, aliases=endpoint.get("Aliases")
            )
