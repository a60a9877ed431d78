# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare absolute paths by their text; whether they exist is not asked."""

from __future__ import annotations


def covers(folder: str, path: str) -> bool:
    """Whether a path is this folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
