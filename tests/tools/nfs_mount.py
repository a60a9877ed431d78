#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount an NFS export without a client in the kernel: a FUSE file system over libnfs, which waits for a lost server for ever.

Each request has the IDs of the user who makes it, so that the server decides what that user may do. Needs libnfs 4, libfuse and
the package mfusepy. Runs in the foreground. Usage: nfs_mount.py nfs://SERVER/EXPORT?version=4 FOLDER
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

import mfusepy

STAT = "dev ino mode nlink uid gid rdev size blksize blocks atime mtime ctime atime_nsec mtime_nsec ctime_nsec used"


class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p), ("file", ctypes.c_char_p)]


class Stat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in STAT.split()]


class Entry(ctypes.Structure):
    _fields_ = [("next", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class Export(mfusepy.Operations):
    """The export, by paths."""

    use_ns = True

    def __init__(self, url: str) -> None:
        self._nfs = ctypes.CDLL(ctypes.util.find_library("nfs") or "libnfs.so.13")
        for name, kind in {
            "init_context": ctypes.c_void_p,
            "parse_url_dir": ctypes.POINTER(Url),
            "readdir": ctypes.POINTER(Entry),
            "get_error": ctypes.c_char_p,
        }.items():
            getattr(self._nfs, "nfs_" + name).restype = kind
        self._context = ctypes.c_void_p(self._nfs.nfs_init_context())
        parsed = self._nfs.nfs_parse_url_dir(self._context, url.encode())
        if not parsed or self._nfs.nfs_mount(self._context, parsed.contents.server, parsed.contents.path):
            raise SystemExit(self._nfs.nfs_get_error(self._context).decode())

    def _call(self, name: str, *arguments: Any) -> int:
        """Call libnfs as the user who makes the request."""
        uid, gid, _pid = mfusepy.fuse_get_context()
        self._nfs.nfs_set_uid(self._context, uid)
        self._nfs.nfs_set_gid(self._context, gid)
        words = [one.encode() if isinstance(one, str) else one for one in arguments]
        result = int(getattr(self._nfs, "nfs_" + name)(self._context, *words))
        if result < 0:
            raise mfusepy.FuseOSError(-result)
        return result

    def _open(self, path: str, flags: int, mode: int = 0) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call("open2", path, flags, mode, ctypes.byref(handle))
        return handle

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = Stat()
        self._call("lstat64", path, ctypes.byref(found))
        plain = ("mode", "ino", "nlink", "uid", "gid", "size", "blocks")
        times = ("atime", "mtime", "ctime")
        return {
            **{"st_" + name: getattr(found, name) for name in plain},
            **{"st_" + name: getattr(found, name) * 10**9 + getattr(found, name + "_nsec") for name in times},
        }

    def opendir(self, path: str) -> int:
        """Whether the user may list the folder, which a client in the kernel asks the server too."""
        folder = ctypes.c_void_p()
        self._call("opendir", path, ctypes.byref(folder))
        self._nfs.nfs_closedir(self._context, folder)
        return 0

    def readdir(self, path: str, fh: int) -> Iterator[str]:
        folder = ctypes.c_void_p()
        self._call("opendir", path, ctypes.byref(folder))
        names = []
        while entry := self._nfs.nfs_readdir(self._context, folder):
            names.append(entry.contents.name.decode())
        self._nfs.nfs_closedir(self._context, folder)
        return iter(names)

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return self.keep(self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))

    def open(self, path: str, flags: int) -> int:
        return self.keep(self._open(path, flags & (os.O_ACCMODE | os.O_TRUNC)))

    @staticmethod
    def keep(handle: ctypes.c_void_p) -> int:
        """A handle of libnfs as the number that the kernel keeps."""
        if handle.value is None:
            raise mfusepy.FuseOSError(errno.EIO)
        return handle.value

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        place = (ctypes.c_uint64(offset), ctypes.c_uint64(size))
        count = self._call("pread", ctypes.c_void_p(fh), *place, buffer)
        return buffer.raw[:count]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        place = (ctypes.c_uint64(offset), ctypes.c_uint64(len(data)))
        return self._call("pwrite", ctypes.c_void_p(fh), *place, data)

    def release(self, path: str, fh: int) -> int:
        return self._call("close", ctypes.c_void_p(fh))

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        return self._call("truncate", path, ctypes.c_uint64(length))

    def unlink(self, path: str) -> int:
        return self._call("unlink", path)

    def mkdir(self, path: str, mode: int) -> int:
        return self._call("mkdir2", path, mode)

    def rmdir(self, path: str) -> int:
        return self._call("rmdir", path)

    def rename(self, old: str, new: str) -> int:
        return self._call("rename", old, new)

    def chmod(self, path: str, mode: int) -> int:
        return self._call("chmod", path, mode)

    def chown(self, path: str, uid: int, gid: int) -> int:
        return self._call("chown", path, uid, gid)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0


if __name__ == "__main__":
    source, folder = sys.argv[1:]
    mfusepy.FUSE(Export(source), folder, foreground=True, nothreads=True, allow_other=True, use_ino=True)
