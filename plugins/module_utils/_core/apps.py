# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An interactive app of ``main1``: the port that it is reached at, and the program that PID 1 runs."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from typing import Any, Mapping

# The command that stands for ENTRYPOINT and CMD of the image.
IMAGE_COMMAND = "image"
# In the path of an app, the place of its token.
TOKEN = "{token}"


@dataclass(frozen=True)
class App:
    """An app: its port is published on the agent of ``main1``, on loopback unless it is public.

    PID 1 runs ``command``; without a command only the port is published. ``ready`` is a path that answers, or a TCP port that
    is listened at, as soon as the app is ready. ``path`` is that of the URL for a browser.
    """

    name: str
    port: int
    preferred_port: int = 0
    public: bool = False
    command: str = ""
    ready: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> App:
        return cls(**{known.name: data[known.name] for known in fields(cls) if known.name in data})

    def url(self, address: str, port: int, token: str) -> str:
        """The URL for a browser. Secret if it holds the token.

        >>> App("lab", 8888, path="/lab?token={token}").url("127.0.0.1", 30001, "abc")
        'http://127.0.0.1:30001/lab?token=abc'
        """
        host = f"[{address}]" if ":" in address else address
        return "http://%s:%d%s" % (host, port, self.path.replace(TOKEN, token))


def tunnel(folder: str, local_port: int, port: int) -> str:
    """The command that forwards a port of this machine to a port of ``main1``. It fails if the local port is in use.

    >>> tunnel("/home/alice/.cluster-compute/train", 30001, 8888)
    'ssh -N -o ExitOnForwardFailure=yes -F /home/alice/.cluster-compute/train/ssh_config -L 30001:main1:8888 main1'
    """
    config = shlex.quote(folder + "/ssh_config") if not folder.startswith("~/") else folder + "/ssh_config"
    return "ssh -N -o ExitOnForwardFailure=yes -F %s -L %d:main1:%d main1" % (config, local_port, port)
