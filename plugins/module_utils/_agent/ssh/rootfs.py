# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resolve the paths of files in an image, and split the files into one archive, or one for each writable folder.

The engine unpacks an archive inside the container's root. It follows symlinks in parent folders, and replaces whatever
has the name of an entry unless both are folders: an entry for ``/home`` would replace a symlink ``/home`` by an empty
folder. So every folder is looked up first. The archive uses real paths, and contains a folder only if it is missing or
needs an owner. A file replaces a symlink of its name; nothing is written through a symlink.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from ..._shared.codec import Json
from ..._shared.errors import ComputeError
from ..._shared.paths import covers
from ..engine.archives import Entry

# Go's os.FileMode, as the engine returns it: https://pkg.go.dev/io/fs#FileMode
_GO_STICKY = 1 << 20
_GO_FOLDER = 1 << 31
_PERMISSIONS = 0o777

Stat = Callable[[str], Optional[Json]]


@dataclass
class Tree:
    """The folders of an image; each is looked up once. ``stat`` returns the properties of a path, or None."""

    stat: Stat
    mounts: Sequence[str] = ()
    _real: Dict[str, str] = field(default_factory=dict)
    _modes: Dict[str, int | None] = field(default_factory=dict)
    _files: Set[str] = field(default_factory=set)

    def real(self, path: str) -> str:
        """The real path of a folder, whether it exists or not; its parents are looked up first."""
        path = posixpath.normpath(path)
        if path == "/":
            return "/"
        if path not in self._real:
            parent, name = posixpath.split(path)
            self._real[path] = self._look(posixpath.join(self.real(parent), name))
        return self._real[path]

    def mode(self, real: str) -> int | None:
        """The permissions of the folder at this real path; None if it does not exist."""
        return 0o755 if real == "/" else self._modes.get(real)

    def place(self, entries: Iterable[Entry]) -> List[Entry]:
        """The entries at their real paths, each after its missing parent folders.

        Optional entries are left out in mounts, and where the image has a file in the place of a folder.
        """
        placed: Dict[str, Entry] = {}
        mounts = [self.real(target) for target in self.mounts]
        for entry in entries:
            home = self.real(entry.path if entry.is_folder else posixpath.dirname(entry.path))
            path = home if entry.is_folder else posixpath.join(home, posixpath.basename(entry.path))
            covering = [mount for mount in mounts if covers(mount, path)]
            if covering and not entry.optional:
                raise ComputeError(_COVERED % (entry.path, covering[0]))
            file = None if covering else self._file_above(entry, path)
            if file and not entry.optional:
                raise ComputeError(_FILE % (file, entry.path))
            if not covering and not file:
                self._add(placed, entry, path)
        return list(placed.values())

    def _file_above(self, entry: Entry, path: str) -> str | None:
        """A file of the image in the place of a folder of the entry."""
        folders = [*_parents(path), path] if entry.is_folder else _parents(path)
        return next((folder for folder in folders if folder in self._files), None)

    def _add(self, placed: Dict[str, Entry], entry: Entry, path: str) -> None:
        for folder in _parents(path):
            if folder not in placed and self.mode(folder) is None:
                placed[folder] = Entry(folder, mode=0o755)
        # An image may keep the owner of a folder from writing into it.
        mode = ((self.mode(path) if entry.is_folder else None) or entry.mode) | (0o700 if entry.is_folder else 0)
        placed[path] = Entry(path, entry.content, mode, entry.uid, entry.gid)

    def _look(self, path: str) -> str:
        # Nothing is below a folder that is known to be missing, or is a file.
        above = posixpath.dirname(path)
        found = None if self._modes.get(above, 0) is None or above in self._files else self.stat(path)
        target = str((found or {}).get("linkTarget") or "")
        if target:  # fully resolved by the engine, inside the container
            return self.real(target) if target != path else path
        mode = int((found or {}).get("mode", 0))
        if found and not mode & _GO_FOLDER:
            self._files.add(path)
        self._modes[path] = (mode & _PERMISSIONS) | (0o1000 if mode & _GO_STICKY else 0) if found else None
        return path


_COVERED = "%s lies below the mount %s, which would hide files that SSH needs; mount the data directory elsewhere."


_FILE = "The image has a file at %s, where the session needs a folder for %s; choose an image without that file."
_READ_ONLY = (
    "The image has a link that leads to %s, which session_read_only_root makes read-only; choose an image without that link, "
    "or set session_read_only_root to false."
)


def split(entries: Sequence[Entry], folders: Sequence[str]) -> List[Tuple[str, List[Entry]]]:
    """The entries by the writable folder that they are unpacked in; without such folders, all at ``/``.

    The first folder comes last: its last file is the mark that all files are installed.
    """
    parts: Dict[str, List[Entry]] = {folder: [] for folder in reversed(folders or ("/",))}
    for entry in entries:
        folder = next((folder for folder in parts if covers(folder, entry.path)), None)
        if folder is None:
            raise ComputeError(_READ_ONLY % entry.path)
        parts[folder].append(entry)
    return [(folder, part) for folder, part in parts.items() if part]


def described(entries: Sequence[Entry]) -> str:
    lines = ["%04o %d:%d %s" % (entry.mode, entry.uid, entry.gid, entry.path) for entry in entries]
    return "".join(f"    {line}\n" for line in lines)


def _parents(path: str) -> List[str]:
    """Every folder above a path, the outermost first, without the root."""
    parts = posixpath.dirname(path).strip("/").split("/")
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts)) if parts[0]]
