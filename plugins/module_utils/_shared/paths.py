# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare absolute paths by their text, and read small files, which may be absent."""

from __future__ import annotations


def covers(folder: str, path: str) -> bool:
    """Return whether a path is this folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read(path: str) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
