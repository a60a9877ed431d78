# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make a host an agent: what it lacks, and the volume of the SSH runtime."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
from contextlib import suppress
from typing import List, Optional, Sequence

from .._agent.engine.client import Engine
from .._agent.engine.connection import OtherEngineError
from .._agent.engine.reports import image_labels
from .._agent.engine.runtime import Scripts, install_runtime, is_installed
from .._agent.host import own_address
from .._shared import label
from .._shared.codec import Json
from .._shared.constants import REFERENCE_IMAGE
from .._shared.errors import EngineError, LibraryError, StateError
from . import swarm
from .step import AgentHandle

_GROUP = "docker"
_FIREWALLS = ("firewall-cmd", "ufw")
_DRIVER = "/proc/driver/nvidia/version"
_NO_ADDRESS = (
    "%s has no IPv4 address, which networks of sessions over several agents need; give it one, or set agent_swarm to "
    "false, so that it runs sessions of its own."
)
_LIVE_RESTORE = (
    "The engine of %s has live-restore, with which it joins no Swarm, which sessions over several agents need; remove "
    "live-restore from its daemon.json and reload the engine, or set agent_swarm to false."
)
_SBIN = ":/usr/local/sbin:/usr/sbin:/sbin"


def examine(
    agent: AgentHandle,
    docker: Sequence[str],
    users: Sequence[str] = (),
    in_swarm: bool = False,
    addresses: Optional[List[str]] = None,
    image: str = REFERENCE_IMAGE,
    needed: bool = False,
    deadline: int = 60,
) -> Json:
    """Return what this user finds on a host, for tasks that only an unfit host needs.

    C(engine) and C(sdk) say whether the engine answers and the Docker SDK is there; with C(needed), an error says why not.
    """
    found = _of_host(users)
    _check(agent, _NO_ADDRESS, in_swarm and not own_address(addresses or []))
    try:
        engine = agent.connect(Engine)
        info, reference = engine.info(), engine.image(image) or {}
        place = swarm.describe(agent, addresses, deadline=deadline).swarm.to_json() if in_swarm else None
        _check(agent, _LIVE_RESTORE, in_swarm and info.restores_live)
        has_runtime = bool(reference) and is_installed(engine, reference, agent.edition)
    except (EngineError, LibraryError) as error:
        is_absent, answers = isinstance(error, LibraryError), _answers(docker, deadline)
        # What the SDK says of an engine that answers its program is not cured by installing an engine, nor is another program.
        if needed or (answers and not is_absent) or isinstance(error, OtherEngineError):
            raise
        return {**found, "reachable": False, "sdk": not is_absent, "engine": answers}
    return {
        **found,
        "sdk": True,
        # The role works with the program, too.
        "engine": shutil.which(docker[0]) is not None,
        "image": image_labels(reference).get(label.IMAGE, ""),
        "has_runtime": has_runtime,
        "lacks_gpu_runtime": os.path.exists(_DRIVER) and "nvidia" not in info.runtimes,
        "swarm": place,
    }


def _check(agent: AgentHandle, message: str, is_unfit: object) -> None:
    if is_unfit:
        raise StateError(message % agent.name, agent.name)


def install(agent: AgentHandle, scripts: Json, applets: Sequence[str], image: str = REFERENCE_IMAGE) -> Json:
    """Fill the volume of the SSH runtime from the reference image, with these scripts by name, unless it is there."""
    engine = agent.connect(Engine)
    return install_runtime(engine, image, Scripts(scripts, list(applets)), check=agent.check)


def _of_host(users: Sequence[str]) -> Json:
    """Return what this process sees without the engine."""
    path = os.environ.get("PATH", "") + _SBIN
    return {
        "is_root": os.geteuid() == 0,
        "has_users": set(users) <= set(_members()),
        "firewalls": [name for name in _FIREWALLS if shutil.which(name, path=path)],
    }


def _members() -> List[str]:
    """The users whom the group of the engine lists."""
    with suppress(KeyError):
        return grp.getgrnam(_GROUP).gr_mem
    return []


def _answers(docker: Sequence[str], deadline: int) -> bool:
    """Return whether the engine answers its program in time."""
    command = [*docker, "version"]
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=deadline)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
