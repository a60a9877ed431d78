# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tar stream of a container, written below one folder of the controller.

The stream is hostile: a name that leads out of the folder ends the copy. Links and devices are left out, so that no file of a
container decides where the controller writes; a symlink that is in the way is replaced and never followed.
"""

from __future__ import annotations

import os
import secrets
import tarfile
from contextlib import contextmanager, suppress
from typing import IO, Iterator, List, Tuple

from ...module_utils._shared.errors import ComputeError, escape_control

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The longest name, or list of attributes, that is read into memory.
_LONGEST_NAME = 64 << 10
_DEEPEST = 256
_PIECE = 1 << 18
# The latest time that every file system can store: in the year 2106.
_LATEST = (1 << 32) - 1
# What a copy leaves free on the controller, of bytes and of files: a share, and at most so many bytes.
_SPARE, _SPARE_BYTES = 20, 5 << 30


class TarReader:
    """Reads the members one by one, with a bound on everything that is kept in memory."""

    def __init__(self, stream: IO[bytes], folder: str, name: str, where: str) -> None:
        self._stream, self._folder, self._name, self._where = stream, folder, name, where
        self.files = self.bytes = self.left_out = 0

    def run(self) -> TarReader:
        """Unpack the stream; the reader has counted what it has brought."""
        long_name = b""
        while True:
            header = self._read(tarfile.BLOCKSIZE, may_end=True)
            if not header.strip(b"\0"):
                return self
            member = self._member(header)
            if member.type == tarfile.GNUTYPE_LONGNAME:
                long_name = self._text(member.size)
            elif member.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
                self._text(member.size)
            else:
                name = os.fsdecode(long_name.rstrip(b"\0")) or member.name
                self._keep(member, self._parts(name))
                long_name = b""

    def _member(self, header: bytes) -> tarfile.TarInfo:
        try:
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise self._refusal("no tar stream") from error
        if member.size < 0:
            raise self._refusal("a file of negative size")
        return member

    def _parts(self, name: str) -> List[str]:
        """The path below the folder. It begins with the name that was asked for."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if "\0" in name or name.startswith("/") or ".." in parts or parts[:1] != [self._name] or len(parts) > _DEEPEST:
            raise self._refusal(
                "a path that was not asked for, {}".format(escape_control(name).replace("\n", "\\n")[:100])
            )
        return parts

    def _keep(self, member: tarfile.TarInfo, parts: List[str]) -> None:
        if member.isdir():
            self._check_room(0)
            with self._opened(parts):
                return
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            self.left_out += 1
            self._copy(member.size if member.type not in (tarfile.LNKTYPE, tarfile.SYMTYPE) else 0, None)
            return
        self._check_room(member.size)
        with self._opened(parts[:-1]) as folder:
            temporary = ".copy-" + secrets.token_hex(8)
            handle = os.open(temporary, _NEW, 0o777 if member.mode & 0o100 else 0o666, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    self._copy(member.size, file)
                    seconds = min(max(0, member.mtime), _LATEST)
                    os.utime(handle, (seconds, seconds))
                os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
        self.files += 1
        self.bytes += member.size

    def _check_room(self, size: int) -> None:
        """A container may send for as long as the copy may take: the controller keeps some of its disk."""
        disk = os.statvfs(self._folder)
        spare = min(disk.f_blocks * disk.f_frsize // _SPARE, _SPARE_BYTES)
        if disk.f_bavail * disk.f_frsize - size < spare or disk.f_favail < disk.f_files // _SPARE:
            raise self._refusal(f"more than the disk of {self._folder} can hold")

    @contextmanager
    def _opened(self, parts: List[str]) -> Iterator[int]:
        """A folder below the target, made where it is missing; never by way of a symlink."""
        here = os.open(self._folder, _FOLDER)
        try:
            for part in parts:
                there = enter(here, part)
                os.close(here)
                here = there
            yield here
        finally:
            os.close(here)

    def _copy(self, size: int, file: IO[bytes] | None) -> None:
        left = size + -size % tarfile.BLOCKSIZE
        while left:
            piece = self._read(min(left, _PIECE))
            if file is not None and size > 0:
                file.write(piece[:size])
            size -= len(piece)
            left -= len(piece)

    def _text(self, size: int) -> bytes:
        if size > _LONGEST_NAME:
            raise self._refusal("a name of %d bytes" % size)
        return self._read(size + -size % tarfile.BLOCKSIZE)[:size]

    def _read(self, size: int, may_end: bool = False) -> bytes:
        content = self._stream.read(size)
        if len(content) != size and not (may_end and not content):
            raise self._refusal("a stream that breaks off")
        return content

    def _refusal(self, what: str) -> ComputeError:
        return ComputeError(f"{self._where} sends {what}", self._where)


def enter(folder: int, name: str) -> int:
    """A folder in a folder, made if it is missing. A symlink or a file in its place is replaced."""
    for _attempt in range(2):
        with suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=folder)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except NotADirectoryError:  # O_DIRECTORY with O_NOFOLLOW says so of a symlink, too
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def pack(source: str, stream: IO[bytes]) -> Tuple[int, int]:
    """Write a file or folder as a tar stream under its own name; returns the number of files, and their bytes."""
    count = size = 0

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo:
        nonlocal count, size
        count, size = count + member.isreg(), size + member.size
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        archive.add(source, arcname=os.path.basename(source), filter=counted)
    return count, size
