# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that prove that agents see the same data directories."""

from __future__ import annotations

from typing import List, Sequence

from .._agent.shared_folders import find_marks, read_only, remove_marks, unwritable, write_marks
from .._shared.codec import Json
from .._shared.documents.step_documents import Change
from .step import AgentHandle

_READ_ONLY = (
    "No container can write to %s: %s has mounted it read-only; mount it there for writing, or mount it with mode ro."
)
_REFUSED = "The session's user (uid %d) cannot write to %s on %s: set session_user to the uid of its owner, or mount it with mode ro."


def mark(
    agent: AgentHandle,
    folders: Sequence[str],
    token: str,
    uid: int,
    gid: int,
    writable: Sequence[str] = (),
    permitted: Sequence[str] = (),
) -> Json:
    """Mark each directory with an empty file whose name contains the token; C(marks) describes them by directory.

    Below the directories of C(permitted), no symbolic link is followed.
    """
    marks, changed = write_marks(folders, token, agent.name, permitted=permitted)
    named = {folder: {**mark, "agent": agent.name} for folder, mark in marks.items()}
    return {"changed": changed, "marks": named, "warnings": _warnings(agent.name, writable, uid, gid)}


def _warnings(agent: str, writable: Sequence[str], uid: int, gid: int) -> List[str]:
    """Why the session's user cannot write to directories that it mounts for writing."""
    fixed = read_only(writable, agent)
    others = [folder for folder in writable if folder not in fixed]
    refused = unwritable(others, uid, gid, agent)
    return [
        *[_READ_ONLY % (folder, agent) for folder in fixed],
        *[_REFUSED % (uid, folder, agent) for folder in refused],
    ]


def find(agent: AgentHandle, marks: Json, token: str, patience: float = 5) -> Json:
    """Find the marks of another agent. Raises an error that names a directory without its mark."""
    find_marks(marks, token, agent.name, patience)
    return {"folders": sorted(marks)}


def unmark(agent: AgentHandle, folders: Sequence[str], token: str, permitted: Sequence[str] = ()) -> Change:
    """Remove the marks."""
    return Change(bool(remove_marks(folders, token, agent.name, permitted=permitted)))
