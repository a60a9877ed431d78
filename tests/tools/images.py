#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare the engine for all test steps: make this machine an agent and build the images of the test hosts.

What is there already stays as it is. With IMAGES_READY=1, as in `make test`, tests rely on the step that has run this program:
to find that nothing is to be done takes seconds of CPU time for each of their processes. This program then builds nothing either.
Usage: [IMAGES_READY=] images.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "drill"))

from agents_lab import Lab
from locks import lock

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 900
READY = bool(os.environ.get("IMAGES_READY"))
OF_TESTS = "lab"
PLAYBOOK = (str(Path(sys.executable).with_name("ansible-playbook")), "-i", "inventory/local.yml")


def provision() -> None:
    """Make this machine an agent: the reference image and the SSH runtime, built if they are missing.

    Raises RuntimeError with the output of the playbook if it fails.
    """
    if READY:
        return
    command = [*PLAYBOOK, "playbooks/provision_agents.yml"]
    with lock("provision"):
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    if done.returncode:
        raise RuntimeError(f"This machine could not be made an agent:\n{done.stdout[-3000:]}{done.stderr}")


def environment(name: str, arguments: Mapping[str, str] | None = None) -> None:
    """Build the image of an environment on this machine if it is missing. It needs the reference image.

    Raises RuntimeError with the output of the playbook if that fails.
    """
    if READY and name == OF_TESTS:
        return
    variables = json.dumps({"environments": [name], "image_build_arguments": arguments or {}})
    command = [*PLAYBOOK, "playbooks/build_environments.yml", "-e", variables]
    with lock(f"environment-{name}"):
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    if done.returncode:
        raise RuntimeError(f"The environment {name} could not be built:\n{done.stdout[-3000:]}{done.stderr}")


def agent() -> None:
    """An agent with the environment of the tests."""
    provision()
    environment(OF_TESTS)


def main() -> int:
    """Build all side by side: each build mostly waits for the network or the disk."""
    if READY:
        print("the images are ready, as IMAGES_READY says")
        return 0
    with ThreadPoolExecutor(2) as threads:
        works = [threads.submit(agent), threads.submit(Lab().make_images)]
    errors = [error for work in works if (error := work.exception()) is not None]
    print("\n".join(str(error) for error in errors) or "the images are ready")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
