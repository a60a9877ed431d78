# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare absolute paths by their text; whether they exist is not asked."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations


def covers(folder: str, path: str) -> bool:
    """Whether a path is this folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
