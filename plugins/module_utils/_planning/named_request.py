# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a request that names a session."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass

from .._core.declaration import declared
from . import rules
from .variable import APPS, COPY, EXEC, LAUNCH, LIST, LOGS, SCHEDULE, TERMINATE, USAGE


@dataclass(frozen=True)
class NamedRequest:
    """The fields that every request begins with."""

    name: str = declared(
        "str",
        "",
        "Name of the session: 4 to 64 letters, digits, C(-), C(_) and C(.), starting and ending with a letter or digit; "
        "unique among the live sessions of an owner.",
        rules.check_name,
        read_by=(LAUNCH, TERMINATE, LOGS, LIST, EXEC, COPY, APPS),
        notes={
            LAUNCH: "If empty, a readable pair of words is chosen.",
            TERMINATE: "May be a pattern, such as V(sweep-*), with O(session_many).",
            LOGS: "The newest session of this name is shown.",
            LIST: "If empty, all sessions are listed.",
        },
        required_by=(TERMINATE, LOGS, EXEC, COPY, APPS),
        required=True,
    )
    owner: str = declared(
        "str",
        "",
        "Owner of the session: 1 to 32 letters, digits, C(-) or C(_), starting and ending with a letter or digit. If empty, "
        "the controller's user.",
        rules.check_session_owner,
        read_by=(LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST, USAGE),
        notes={
            LAUNCH: "Owners separate sessions by name. They do not restrict anyone who has access to the head.",
            LOGS: "V(all) means every owner.",
            LIST: "V(all) means every owner.",
        },
        required=True,
    )
