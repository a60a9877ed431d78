# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data folders of the host that do not answer: an engine that mounts such a folder waits for it without a deadline."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._core.bounded import PATIENCE, existing, silence
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Session


def check_folders_answer(session: Session, agent: str, seconds: float = PATIENCE) -> None:
    """Raise a ComputeError that names a folder of the session that does not answer on this host."""
    folders = list(dict.fromkeys(mount.source for mount in session.mounts if mount.type == "bind"))
    silent = [folder for folder, found in existing(folders, seconds).items() if found is None]
    if silent:
        raise ComputeError(silence(silent[0], agent), agent)
