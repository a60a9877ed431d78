# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declare how a session is used: the declaration of the variables of ``exec``, ``copy``, ``commit`` and ``restart``."""

from __future__ import annotations

from typing import Any, Tuple

from ...module_utils._shared import value_rules
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.image_reference import own_digest
from ...module_utils._shared.planning.variable import (
    COMMIT,
    COPY,
    EXEC,
    RESTART,
    Variable,
    choice,
    describe_variable,
    flag,
    names,
    whole_number,
)

_WEEK = 7 * 86400


def _target(entry_point: str, what: str, seconds: int) -> Tuple[Variable, ...]:
    """Where a command or a copy goes, for how long, and what follows a failure."""
    return (
        names(
            f"{entry_point}_containers",
            "Hostnames of the containers, which must belong to the session. If empty, all.",
            value_rules.check_names,
            read_by=(entry_point,),
        ),
        whole_number(
            f"{entry_point}_timeout",
            seconds,
            (1, _WEEK),
            f"Seconds after which the {what} is ended in all containers, from 1 to 604800, which is a week.",
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


def _check_new_image(variable: str, value: Any) -> str:
    """The name of an image that is to be made."""
    name = value_rules.check_image(variable, value)
    if own_digest(name) or name.startswith("sha256:"):
        raise InputError(
            variable, name, "must be a name with or without a tag: the image gets its digest when it is made"
        )
    if name.startswith("cluster-compute/"):
        raise InputError(variable, name, "must not begin with cluster-compute/, where the environments are")
    return name


ACCESS_SETTINGS: Tuple[Variable, ...] = (
    describe_variable(
        "exec_command",
        "Command for the user's shell in the containers, at most 60,000 bytes. Its standard input is empty.",
        value_rules.check_script,
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
    describe_variable(
        "copy_source",
        "File or directory to copy. Relative to the working directory of the command, or to the user's home in a container.",
        value_rules.check_path,
        read_by=(COPY,),
        required_by=(COPY,),
    ),
    describe_variable(
        "copy_target",
        "Directory that receives it, under its own name. With O(session_copy_direction=from), the directory receives a directory "
        "for each container. It is created if it does not exist.",
        value_rules.check_path,
        default=".",
        read_by=(COPY,),
    ),
    *_target(COPY, "copy", 3600),
    describe_variable(
        "commit_image",
        "Name of the image, such as V(team/train:2). An image of this name is replaced if it was made of a session of the same owner.",
        _check_new_image,
        read_by=(COMMIT,),
        required_by=(COMMIT,),
    ),
    describe_variable(
        "commit_container", "Hostname of the container that the image is made of.", default="main1", read_by=(COMMIT,)
    ),
    flag(
        "commit_squash",
        "Make an image of one layer. Otherwise the image shares the layers of the session's image. An engine with containerd's image "
        "store always makes one layer.",
        read_by=(COMMIT,),
    ),
    whole_number(
        "commit_timeout",
        3600,
        (1, _WEEK),
        "Seconds that making the image may take, from 1 to 604800, which is a week.",
        read_by=(COMMIT,),
    ),
    names(
        "restart_containers",
        "Hostnames of the containers to restart. If empty, all.",
        value_rules.check_names,
        read_by=(RESTART,),
    ),
    describe_variable("restart_app", "Name of an app to restart, in place of containers.", read_by=(RESTART,)),
)
