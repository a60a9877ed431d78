# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine's error message without noise, and advice for the user. Only the advice is guessed from the text."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Iterator

from .._core.constants import RUNTIME_PATH
from .._core.errors import ComputeError

LONGEST = 300

_NOISE = (
    r"error response from daemon: ",
    r"failed to create shim(?: task)?: ",
    r"failed to create task for container: ",
    r"oci runtime create failed: ",
    r"(?:container_linux|standard_init_linux|process_linux)\.go:\d+: ",
    r"runc create failed: ",
    r"starting container process caused:? ",
    r"unable to start container process: ",
    r"driver failed programming external connectivity on endpoint \S+ \([0-9a-f]+\): ",
)
_NOISE_PATTERN = re.compile("|".join(_NOISE), re.IGNORECASE)

# ``naming_image`` puts the name in the place of "its image".
THE_IMAGE = "correct its image, or choose another"

# Of an engine that does not answer.
_SILENT = ((r"connection refused|no such file or directory|connection aborted", "start the engine"),)

_ADVICE = (
    (r"no such image|pull access denied|manifest unknown", "build or pull the image there, or choose another"),
    (
        r"unauthorized|authentication required|no basic auth credentials",
        "log in: set session_registry, session_registry_username and session_registry_password",
    ),
    (
        r"no such host|network is unreachable|no route to host|connection refused",
        "make sure that this host can reach it",
    ),
    (r"port is already allocated|bind for .*: address already in use|listen tcp", "free that port or choose another"),
    (r"could not select device driver", "install the NVIDIA container toolkit there, or ask for no GPUs"),
    (r"unknown device|nvidia-container-cli", "check the GPUs that this agent declares"),
    (r"failed to mount local volume", "check the options of that mount, and that the host can mount it"),
    (r"gathering device information|no such device", "use a device that exists there"),
    (r"bind source path does not exist", "create that folder on the agent"),
    (r"range of cpus|requested cpus are not available", "ask for fewer CPUs"),
    (r"minimum memory limit", "ask for more memory"),
    (r"error setting rlimit", "restart its engine with higher limits"),
    (r"no space left on device", "free some space on that disk"),
    (r"pool overlaps", "choose another pool of subnets, or remove the overlapping network"),
    (r"storage-opt|storage option|pquota", "set session_disk to 0, or use a storage driver with quotas there"),
    (r"address already in use", "remove the container that has that address on the network"),
    (r"could not find an available|all predefined address pools", "remove unused networks"),
    (r"does not support reading", "read it where its logging driver sends it"),
    (r"not a swarm manager", "run this on a manager of the Swarm"),
    (r"permission denied", "add the user to group docker, or become root"),
    (re.escape(RUNTIME_PATH) + r"\S*: no such file", "run provision_agents.yml, which fills the SSH runtime"),
    (r"no such file or directory|not a directory|is a directory|executable file not found", THE_IMAGE),
    (
        r"did not receive an exit event",
        "a program in it waits for a file server or a disk: end the session again when that answers",
    ),
    (r"timed out|timeout", "check the load of that host, and run the same command again"),
    (r"network \S+ not found", "run the same command again to create the network"),
    (
        r"active endpoints",
        "remove the containers that are still on it; if there are none, the engine has lost track of one: start the engine again",
    ),
    (r"in use by task", "an agent still has containers on it: terminate the session again once that agent answers"),
)


_TAKEN = re.compile(
    r"port is already allocated|bind for .*: address already in use|listen tcp.*address already in use|pool overlaps",
    re.IGNORECASE,
)


def is_taken(text: str) -> bool:
    """Whether the engine refuses a port or a subnet because something else has it.

    >>> is_taken("Pool overlaps with other one on this address space")
    True
    """
    return bool(_TAKEN.search(text))


def clean(text: str) -> str:
    """The engine's message as one line, without prefixes that name its internal functions."""
    line = _NOISE_PATTERN.sub("", " ".join(text.split()))
    line = re.sub(r"(?:: unknown|[.\s])+$", "", line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def advice(text: str, otherwise: str, is_silent: bool = False) -> str:
    """What the user can do about an engine's message, or about an engine that does not answer; ``otherwise`` if nothing is known."""
    known = _SILENT + _ADVICE if is_silent else _ADVICE
    return next((what for pattern, what in known if re.search(pattern, text, re.IGNORECASE)), otherwise)


@contextmanager
def naming_image(image: str) -> Iterator[None]:
    """Errors of the image, with its name."""
    try:
        yield
    except ComputeError as error:
        error.message = error.message.replace(THE_IMAGE, THE_IMAGE.replace("its image", "image " + image))
        raise
