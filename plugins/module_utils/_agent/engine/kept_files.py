# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Select the files of a session's container that an image keeps, and make their layer from the archive that the engine exports.

The archive has the root of the container without its mounts. A file that is left out is never written anywhere. Only names are
in memory, and the content of a file passes in blocks.
"""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
from typing import IO, Any, Callable, Collection, Dict, Iterable, List, Set, Tuple

from ..._shared.constants import (
    CONFIG_FOLDER,
    DEEPSPEED_HOSTFILE,
    HYDRA_HOSTFILE,
    MPI_HOSTFILE,
    PARALLEL_LOGINS,
    RUNTIME_PATH,
)
from .streams import Pieces

# An image of one layer has these directories, or the links in their place, because programs need them.
_EMPTY = ("tmp", "var/tmp", "run", "var/run", "dev", "proc", "sys")
# Of no use in an image: temporary files, what the engine and the session put into each container, and logs of apps. A whole tree each.
_LEFT_OUT = (
    *(*_EMPTY, "var/log/cluster-compute", ".dockerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf"),
    *("etc/profile.d/00-cluster-compute.sh", "etc/ssh/ssh_known_hosts"),
    *(path[1:] for path in (DEEPSPEED_HOSTFILE, MPI_HOSTFILE, HYDRA_HOSTFILE, PARALLEL_LOGINS, RUNTIME_PATH)),
)
# Keys, tokens, the session's own files, and in homes histories and what programs log in with. A whole tree each.
_SECRET = re.compile(
    rf"{CONFIG_FOLDER[1:]}|etc/ssh/ssh_host_[^/]*|(.*/)?\.ssh"
    r"|(home/[^/]+|root)/(.*/)?("
    r"\.?\w*history(\.\w+)?(-\w+)?|\.histfile|\.\w+_hist|\.lesshst|\.viminfo|\.xsession-errors"
    r"|\.netrc|\.pgpass|\.pypirc|\.git-credentials|\.aws|\.azure|\.kube|\.gnupg|\.docker|\.kaggle|\.config/(gcloud|gh)"
    r"|\.cache/huggingface/(token|stored_tokens)|\.local/share/jupyter/(runtime|notebook_secret)|id_container)",
    re.DOTALL,
)
_KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
_WHITEOUT = ".wh."
_XATTR = "SCHILY.xattr."
# Go writes each byte that is not UTF-8 as this character in JSON.
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_secret(path: str) -> bool:
    """Return whether a path, without its first slash, is or lies in what no image may have."""
    return any(_SECRET.fullmatch(part) for part in _upwards(path))


def is_left_out(path: str) -> bool:
    """Return whether a path, without its first slash, is or lies in what is of no use in an image, or secret."""
    return any(part in _LEFT_OUT for part in _upwards(path)) or is_secret(path)


def _upwards(path: str) -> List[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


class Layer:
    """The archive of a layer that is written to ``file``, from one or two exports of a container.

    ``changed`` are the paths that the layer has, without their first slash; None for all. ``spend`` is called with each number of
    bytes before they are written, and may raise.
    """

    def __init__(self, file: IO[bytes], changed: Collection[str] | None, spend: Callable[[int], None]) -> None:
        self._tar = _archive(file)
        self._changed, self._spend = changed, spend
        self._written: Set[str] = set()
        # Hard links to files that are not written, by the file; files that are written and have a secret name, too.
        self._lacking: Dict[str, List[tarfile.TarInfo]] = {}
        self.tainted: Set[str] = set()

    def add_export(self, pieces: Iterable[bytes]) -> bool:
        """Add what an image keeps of an export. Whether another export is needed, for files under other names of them."""
        stream = Pieces(pieces)
        for member, content in kept_members(stream):
            path = plain(member.name)
            if member.type in _KINDS and not _is_odd(member.name) and self._is_wanted(path, member):
                self._add(path, member, content)
        stream.drain()
        self._lacking = {path: links for path, links in self._lacking.items() if path not in self.tainted}
        return bool(self._lacking)

    def add_names(self, pieces: Iterable[bytes]) -> None:
        """Add the files that have been left out under one name, and are kept under others."""
        stream = Pieces(pieces)
        for member, content in kept_members(stream):
            links = self._lacking.pop(plain(member.name), [])
            if links and member.isreg():
                first = plain(links[0].name)
                self._write(first, member, content)
                for link in links[1:]:
                    link.linkname = first
                    self._write(plain(link.name), link, None)
        stream.drain()

    def add_deleted(self, paths: Iterable[str]) -> None:
        """Add a mark for each path that the image does not have any more, and close the archive."""
        for path in paths:
            folder, name = posixpath.split(path)
            if not _is_odd(path) and not is_left_out(path) and "\ufffd" not in path:
                self._write(posixpath.join(folder, _WHITEOUT + name), tarfile.TarInfo(), io.BytesIO())
        self._tar.close()

    def _is_wanted(self, path: str, member: tarfile.TarInfo) -> bool:
        if self._changed is not None and _SURROGATE.sub("\ufffd", path) not in self._changed:
            return False
        if member.islnk() and is_secret(path):
            self.tainted.add(plain(member.linkname))
        is_place = self._changed is None and path in _EMPTY and (member.isdir() or member.issym())
        return is_place or not is_left_out(path)

    def _add(self, path: str, member: tarfile.TarInfo, content: IO[bytes] | None) -> None:
        target = plain(member.linkname) if member.islnk() else ""
        if not target or target in self._written:
            member.linkname = target or member.linkname
            self._write(path, member, content)
        elif not is_secret(target):
            self._lacking.setdefault(target, []).append(member)

    def _write(self, path: str, member: tarfile.TarInfo, content: IO[bytes] | None) -> None:
        self._spend(2 * tarfile.BLOCKSIZE + member.size)
        member.name = path
        member.pax_headers = {name: text for name, text in member.pax_headers.items() if name.startswith(_XATTR)}
        self._tar.addfile(member, content)
        self._tar.members = []  # type: ignore[attr-defined]
        if member.isreg():
            self._written.add(path)


def without_paths(source: IO[bytes], target: IO[bytes], names: Collection[str]) -> None:
    """Copy the archive of a layer without these files, and without the links to them."""
    with _archive(target) as tar:
        for member, content in kept_members(source):
            if member.name not in names and not (member.islnk() and member.linkname in names):
                tar.addfile(member, content)
                tar.members = []  # type: ignore[attr-defined]


def kept_members(source: Any) -> Iterable[Tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """The entries of an archive, each with its content. None of them is kept in memory."""
    with tarfile.open(fileobj=source, mode="r|", encoding="utf-8") as tar:
        member = tar.next()
        while member is not None:
            yield member, tar.extractfile(member) if member.isreg() else None
            tar.members = []  # type: ignore[attr-defined]
            member = tar.next()


def _archive(file: IO[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8")


def plain(name: str) -> str:
    """The path of an entry, without its first slash; empty for the root.

    >>> plain("./etc/passwd"), plain("/")
    ('etc/passwd', '')
    """
    return posixpath.normpath("/" + name).lstrip("/")


def _is_odd(name: str) -> bool:
    """Return whether no layer may have an entry of this name. One that begins as a whiteout's does would delete files of the image.

    >>> _is_odd("a/../../b"), _is_odd("home/.wh.bin"), _is_odd("home/wh")
    (True, True, False)
    """
    return not plain(name) or any(part == ".." or part.startswith(_WHITEOUT) for part in name.split("/"))
