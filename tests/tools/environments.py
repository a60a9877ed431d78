# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions with an environment that is built with the packages that this machine's pip finds, and chosen by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import example_images
import images
from controller import ROOT, Controller, Session, run

FOLDERS = ROOT / "roles" / "image" / "files" / "environments"
SIZE = {"session_cluster_size": 2, "session_cpus": 1, "session_memory": "1g", "session_shm": "256m"}
NAME = "work"


def make(client: Any, name: str) -> None:
    """Build an environment."""
    if (FOLDERS / name / "requirements.txt").exists():
        with example_images.wheels(client, FOLDERS / name) as arguments:
            images.environment("lab")
            # The file of PyTorch may come from the index for CPUs, whose digests are in no lock.
            images.environment(
                name, {**arguments, "REQUIREMENTS": "requirements.txt"} if name == "pytorch" else arguments
            )
    else:
        images.environment(name)


def build(controller: Controller, name: str) -> None:
    """Build an environment, and see it in the list."""
    make(controller.client, name)
    listed = controller.play("environments").check().text
    assert re.search(rf"^ +\"?{name} .* localhost ", listed, re.MULTILINE), listed


def launched(controller: Controller, name: str, **variables: object) -> Session:
    build(controller, name)
    return controller.launched(NAME, session_image=name, **SIZE, **variables)


def copied(controller: Controller, program: Path) -> None:
    """A program in the home of every container, by the command of a user."""
    controller.play("session_copy", session_name=NAME, session_copy_source=str(program)).check()


def said(session: Session, command: str) -> str:
    """The output of a command on main1 that may take minutes on a busy machine."""
    return run(["ssh", "-F", session.config, "main1", command], timeout=900).check().text
