# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How commands are run and files are copied in a session: the declaration of the variables of ``exec`` and ``copy``."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Tuple

from .._core import value_rules
from . import rules
from .variable import COPY, EXEC, Variable, choice

_WEEK = 7 * 86400


def _target(entry_point: str, what: str, seconds: int) -> Tuple[Variable, ...]:
    """Where a command or a copy goes, for how long, and what follows a failure."""
    return (
        Variable(
            f"{entry_point}_containers",
            "list",
            [],
            "Hostnames of the containers, which must belong to the session. If empty, all.",
            rules.check_names,
            elements="str",
            read_by=(entry_point,),
        ),
        Variable(
            f"{entry_point}_timeout",
            "int",
            seconds,
            f"Seconds after which the {what} is ended in all containers, from 1 to 604800, which is a week.",
            value_rules.within(1, _WEEK),
            read_by=(entry_point,),
        ),
        Variable(
            f"{entry_point}_fail",
            "bool",
            True,
            f"Fail if the {what} fails in a container.",
            value_rules.check_boolean,
            read_by=(entry_point,),
        ),
    )


ACCESS_SETTINGS: Tuple[Variable, ...] = (
    Variable(
        "exec_command",
        "str",
        "",
        "Command for the user's shell in the containers, at most 60,000 bytes. Its standard input is empty.",
        value_rules.check_text,
        read_by=(EXEC,),
        required_by=(EXEC,),
    ),
    *_target(EXEC, "command", 600),
    choice(
        "exec_output",
        ("prefixed", "grouped"),
        "V(prefixed) writes each line after the name of its container, V(grouped) writes a block for each container.",
        read_by=(EXEC,),
    ),
    choice(
        "copy_direction",
        ("to", "from"),
        "V(to) copies from the controller to the containers, V(from) copies from the containers to the controller.",
        read_by=(COPY,),
    ),
    Variable(
        "copy_source",
        "str",
        "",
        "File or folder to copy. Relative to the working directory of the command, or to the user's home in a container.",
        rules.check_path,
        read_by=(COPY,),
        required_by=(COPY,),
    ),
    Variable(
        "copy_target",
        "str",
        ".",
        "Folder that receives it, under its own name. With O(session_copy_direction=from), the folder receives a folder "
        "for each container. It is created if it does not exist.",
        rules.check_path,
        read_by=(COPY,),
    ),
    *_target(COPY, "copy", 3600),
)
