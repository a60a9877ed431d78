# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets on their way into a container: from the memory of the controller to a tmpfs of the container, over no disk.

A program of the SSH runtime unpacks them from its standard input after each start. PID 1 waits for the last file
(roles/image/files/secrets.sh).
"""

from __future__ import annotations

import base64
import shlex
from dataclasses import dataclass
from typing import Mapping

from ..._shared.codec import Sealed
from ..._shared.constants import SECRETS_FOLDER
from ..._shared.documents.plan import User
from .archives import Entry, pack_archive


@dataclass(frozen=True)
class SecretFiles(Sealed):
    """The contents of the files by name, as base64, the variables, and these as sshd's SetEnv has them."""

    contents: Mapping[str, str]
    variables: Mapping[str, str]
    set_env: str

    def __repr__(self) -> str:
        return f"Delivery({','.join(self.contents)})"

    def archive(self, user: User) -> bytes:
        """A tar archive: files that only the user can read, and files for PID 1, the last of which completes them."""
        exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in self.variables.items())
        own = {".environment": exports, ".set_env": self.set_env and self.set_env + "\n", ".complete": ""}
        files = [
            Entry(f"{SECRETS_FOLDER}/{name}", base64.b64decode(content), 0o400, user.uid, user.gid)
            for name, content in self.contents.items()
        ]
        files += [Entry(f"{SECRETS_FOLDER}/{name}", text.encode(), 0o600) for name, text in own.items()]
        return pack_archive(files, SECRETS_FOLDER)
