# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine's own words, cleaned, and what a user can do about them. Only the advice is guessed from the text."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re

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

_ADVICE = (
    (r"no such image|pull access denied|manifest unknown", "build or pull the image there, or choose another"),
    (r"unauthorized|authentication required|no basic auth credentials", "log in: see session_registry_username"),
    (r"no such host|network is unreachable|no route to host", "see that this host reaches it"),
    (r"port is already allocated|bind for .*: address already in use|listen tcp", "free that port or choose another"),
    (r"could not select device driver", "install the NVIDIA container toolkit there, or ask for no GPUs"),
    (r"unknown device|nvidia-container-cli", "look at the GPUs that this agent declares"),
    (
        r"failed to mount local volume",
        "look at the options of that mount, and whether that host can mount such a thing",
    ),
    (r"gathering device information|no such device", "name a device that exists there"),
    (r"bind source path does not exist", "create that folder on the agent"),
    (r"range of cpus|requested cpus are not available", "ask for fewer CPUs"),
    (r"minimum memory limit", "ask for more memory"),
    (r"error setting rlimit", "restart its engine with higher limits"),
    (r"no space left on device", "free some space on that disk"),
    (r"pool overlaps", "choose another pool of subnets, or remove the network in its way"),
    (r"address already in use", "remove what holds that address on the network"),
    (r"could not find an available|all predefined address pools", "remove networks that nobody uses"),
    (r"does not support reading", "read it where its logging driver sends it"),
    (r"not a swarm manager", "run this on a manager of the Swarm"),
    (r"permission denied", "add the user to group docker, or become root"),
    (r"connection refused|no such file or directory|connection aborted", "start the engine"),
    (r"timed out|timeout", "look at the load of that host, and run the same command again"),
    (r"network \S+ not found", "run the same command again: it makes the network anew"),
    (r"active endpoints", "remove the containers that are still on it"),
    (r"in use by task", "some agent still has containers on it: end the session again once that agent answers"),
)


def clean(text: str) -> str:
    """The engine's reason as one line, without the names of the functions that it went through.

    >>> clean('OCI runtime create failed: runc create failed: exec: "x": not found: unknown')
    'exec: "x": not found'
    """
    line = _NOISE_PATTERN.sub("", " ".join(text.split()))
    line = re.sub(r"(?:: unknown|[.\s])+$", "", line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def advice(text: str, otherwise: str) -> str:
    """What to do about an engine's reason."""
    return next((what for pattern, what in _ADVICE if re.search(pattern, text, re.IGNORECASE)), otherwise)
