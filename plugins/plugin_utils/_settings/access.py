# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declare how a session is used: the declaration of the variables of ``exec``, ``copy``, ``commit`` and ``restart``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

from ...module_utils._shared import value_rules
from ...module_utils._shared.documents.declaration import (
    declared,
    declared_choice,
    declared_flag,
    declared_names,
    declared_text,
    declared_whole,
)
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.image_reference import own_digest
from ...module_utils._shared.planning.variable import COMMIT, COPY, EXEC, RESTART

_WEEK = 7 * 86400


@dataclass(frozen=True)
class Scope:
    """Where a command or a copy goes, for how long, and whether its failure is one of the task."""

    containers: Tuple[str, ...]
    timeout: int
    fails: bool


def _containers(playbook: str) -> Any:
    text = "Hostnames of the containers, which must belong to the session. If empty, all."
    return declared_names(text, value_rules.check_names, read_by=(playbook,))


def _timeout(playbook: str, what: str, seconds: int) -> Any:
    text = f"Seconds after which the {what} is ended in all containers, from 1 to 604800, which is a week."
    return declared_whole(seconds, (1, _WEEK), text, read_by=(playbook,))


def _fail(playbook: str, what: str) -> Any:
    text = f"Fail if the {what} fails in a container."
    return declared("bool", True, text, value_rules.check_boolean, read_by=(playbook,))


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


@dataclass(frozen=True)
class AccessSettings:
    """The settings of commands in containers, copies, images that are made of containers, and restarts."""

    exec_command: str = declared_text(
        "Command for the user's shell in the containers, at most 60,000 bytes. Its standard input is empty.",
        value_rules.check_script,
        read_by=(EXEC,),
        required_by=(EXEC,),
    )
    exec_containers: Tuple[str, ...] = _containers(EXEC)
    exec_timeout: int = _timeout(EXEC, "command", 600)
    exec_fail: bool = _fail(EXEC, "command")
    exec_output: str = declared_choice(
        ("prefixed", "grouped"),
        "V(prefixed) writes each line after the name of its container, V(grouped) writes a block for each container.",
        read_by=(EXEC,),
    )
    copy_direction: str = declared_choice(
        ("to", "from"),
        "V(to) copies from the controller to the containers, V(from) copies from the containers to the controller.",
        read_by=(COPY,),
    )
    copy_source: str = declared_text(
        "File or directory to copy. Relative to the working directory of the command, or to the user's home in a container.",
        value_rules.check_path,
        read_by=(COPY,),
        required_by=(COPY,),
    )
    copy_target: str = declared_text(
        "Directory that receives it, under its own name. With O(session_copy_direction=from), the directory receives a directory "
        "for each container. It is created if it does not exist.",
        value_rules.check_path,
        default=".",
        read_by=(COPY,),
    )
    copy_containers: Tuple[str, ...] = _containers(COPY)
    copy_timeout: int = _timeout(COPY, "copy", 3600)
    copy_fail: bool = _fail(COPY, "copy")
    commit_image: str = declared_text(
        "Name of the image, such as V(team/train:2). An image of this name is replaced if it was made of a session of the same owner.",
        _check_new_image,
        read_by=(COMMIT,),
        required_by=(COMMIT,),
    )
    commit_container: str = declared_text(
        "Hostname of the container that the image is made of.", default="main1", read_by=(COMMIT,)
    )
    commit_squash: bool = declared_flag(
        "Make an image of one layer. Otherwise the image shares the layers of the session's image. An engine with containerd's image "
        "store always makes one layer.",
        read_by=(COMMIT,),
    )
    commit_timeout: int = declared_whole(
        3600,
        (1, _WEEK),
        "Seconds that making the image may take, from 1 to 604800, which is a week.",
        read_by=(COMMIT,),
    )
    restart_containers: Tuple[str, ...] = declared_names(
        "Hostnames of the containers to restart. If empty, all.",
        value_rules.check_names,
        read_by=(RESTART,),
    )
    restart_app: str = declared_text("Name of an app to restart, in place of containers.", read_by=(RESTART,))

    @property
    def of_exec(self) -> Scope:
        return Scope(self.exec_containers, self.exec_timeout, self.exec_fail)

    @property
    def of_copy(self) -> Scope:
        return Scope(self.copy_containers, self.copy_timeout, self.copy_fail)
