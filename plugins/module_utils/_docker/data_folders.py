# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data folders of the host that do not answer: an engine that mounts such a folder waits for it without a deadline.

An engine mounts the folders of a container again to read or write a file of it, and holds the container's lock meanwhile: after one
such request, no other request for the container is answered, its end included. So the folders are asked first.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Collection, Iterable, List, Sequence, Set

from .._core.bounded import PATIENCE, existing, silence
from .._core.documents import Json
from .._core.errors import ComputeError
from .._core.model import Session

_MOST_NAMES = 5


def check_folders_answer(session: Session, agent: str, seconds: float = PATIENCE) -> None:
    """Raise a ComputeError that names a folder of the session that does not answer on this host."""
    _must_answer([mount.source for mount in session.mounts if mount.type == "bind"], agent, seconds)


def check_mounts_answer(listed: Iterable[Json], agent: str, seconds: float = PATIENCE) -> None:
    """Raise a ComputeError that names a folder of these containers that does not answer on this host."""
    _must_answer(_all_folders(listed), agent, seconds)


def silent_folders(listed: Iterable[Json], seconds: float = PATIENCE) -> Set[str]:
    """The folders of the host that these containers mount and that do not answer; each folder is asked once."""
    return {folder for folder, found in existing(_all_folders(listed), seconds).items() if found is None}


def folders_of(listed: Json) -> Set[str]:
    """The folders of the host that a container of the engine's list mounts.

    >>> folders_of({"Mounts": [{"Type": "bind", "Source": "/srv/data"}, {"Type": "volume", "Name": "cache", "Source": ""}]})
    {'/srv/data'}
    """
    mounts = listed.get("Mounts") or []
    return {mount["Source"] for mount in mounts if mount.get("Type") == "bind" and mount.get("Source")}


def waiting_programs(names: Sequence[str], folders: Collection[str], agent: str) -> str:
    """A sentence for users about containers that do not end.

    >>> waiting_programs(["alice.train.main1"], ["/srv/data"], "node1")
    'alice.train.main1: on node1 a program waits for /srv/data, which does not answer; run the end again when its file server is back.'
    """
    shown = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        shown += " and %d more" % (len(names) - _MOST_NAMES)
    message = "%s: on %s a program waits for %s, which does not answer; run the end again when its file server is back."
    return message % (shown, agent, ", ".join(sorted(folders)))


def _all_folders(listed: Iterable[Json]) -> List[str]:
    return sorted({folder for container in listed for folder in folders_of(container)})


def _must_answer(folders: Iterable[str], agent: str, seconds: float) -> None:
    asked = list(dict.fromkeys(folders))
    silent = [folder for folder, found in existing(asked, seconds).items() if found is None]
    if silent:
        raise ComputeError(silence(silent[0], agent), agent)
