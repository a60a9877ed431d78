# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archives of files that containers get."""

from __future__ import annotations

import io
import posixpath
import tarfile
import time
from dataclasses import dataclass
from typing import Sequence


@dataclass(frozen=True)
class Entry:
    """A file, a link to ``target``, or a folder (without content). An ``optional`` one is left out inside a mount of the user."""

    path: str
    content: bytes | None = None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    optional: bool = False
    target: str = ""

    @property
    def is_folder(self) -> bool:
        return self.content is None


def pack_archive(entries: Sequence[Entry], folder: str = "/") -> bytes:
    """A tar archive of the entries, to be unpacked in this folder."""
    buffer, now = io.BytesIO(), int(time.time())
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(posixpath.relpath(entry.path, folder))
            info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, now
            info.size, info.linkname = len(entry.content or b""), entry.target
            if entry.content is None:
                info.type = tarfile.SYMTYPE if entry.target else tarfile.DIRTYPE
            archive.addfile(info, io.BytesIO(entry.content or b""))
    return buffer.getvalue()
