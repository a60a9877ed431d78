# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder that the controller keeps for a session: its secret, what ssh needs, and the result.

Several forks may write it at the same time, and other users may prepare its parent folder: every file appears complete or
not at all, and no symlink is followed at the folder's own name or inside it.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import Iterator, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import SESSION_DIRS
from ...module_utils._shared.errors import ComputeError, InputError
from .._hosts.files import draft, lock_folder, replace
from .keys import SECRET_BYTES, Identity

IDENTITY = "identity"
# The URLs of the apps, with their tokens.
APPS = "apps"
DOCUMENT = "session.json"
# The only files that the collection writes and removes in the folder.
FILES = (IDENTITY, APPS, "id_container", "known_hosts", DOCUMENT, "ssh_config", "trace.json")
# What link(2) answers on file systems without hard links, such as exFAT.
_LINKLESS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


class DamagedError(ComputeError):
    """The identity file is damaged."""


class Artifacts:
    """``<base>/<session name>/``, mode 0700.

    A controller may use a name twice, for another owner or another inventory. The folder belongs to one session, whose ID is
    in the file of the secret. A folder with other files in it is refused.
    """

    def __init__(self, base: str, name: str) -> None:
        if not name or "/" in name or name.startswith("."):
            raise InputError("session_name", name, "must be a plain directory name")
        self.base = base_of(base)
        self.folder = os.path.join(self.base, name)

    def identity(self, session: str, create: bool) -> Identity | None:
        """The session's identity. With ``create``, a missing secret is generated, by only one of several forks."""
        secret, owner = self._secret()
        if not secret and create:
            with self._written(IDENTITY) as folder:
                self._keep_first(folder, (f"{secrets.token_hex(SECRET_BYTES)} {session}\n").encode())
            secret, owner = self._secret()
        if not secret:
            return None
        if owner != session:
            message = "%s belongs to session %s; choose another name, or set session_artifacts to another directory."
            raise ComputeError(message % (self.folder, owner))
        return Identity(secret, session)

    def known_identity(self, session: str, name: str) -> Identity:
        """The identity of a session that this controller has launched. Raises ComputeError on another controller."""
        found = self.identity(session, create=False)
        if found is None:
            message = "%s does not have the keys of session %s: run this on the controller that launched it."
            raise ComputeError(message % (self.folder, name))
        return found

    @property
    def session(self) -> str:
        """The ID of the session that the folder belongs to; empty if it belongs to none."""
        session = self._secret()[1]
        if not session:
            self._refuse_strangers()
        return session

    def _refuse_strangers(self) -> None:
        try:
            strange = sorted(name for name in os.listdir(self.folder) if not _is_ours(name))
        except OSError:
            return  # it does not exist, or cannot be read: a later write reports that
        if strange:
            rule = "the directory %s has that name and contains %s; choose another name, or set session_artifacts to another directory"
            raise InputError("session_name", os.path.basename(self.folder), rule % (self.folder, strange[0]))

    def _secret(self) -> Tuple[bytes, str]:
        """The secret, and the ID of its session."""
        found = self.read(IDENTITY)
        if found is None:
            return b"", ""
        try:
            secret, session = found.decode("ascii").split()
            return bytes.fromhex(secret), session
        except ValueError as error:
            message = "%s/%s is damaged; restore a copy of it, or terminate the session and launch it again."
            raise DamagedError(message % (self.folder, IDENTITY)) from error

    def read(self, name: str) -> bytes | None:
        """The content of a file; empty if it does not exist."""
        return self._look(name)[0]

    def write(self, name: str, content: bytes, mode: int = 0o600) -> bool:
        """Write a file unless it has this content; returns whether it changed."""
        if self.holds(name, content, mode):
            return False
        with self._written(name) as folder:
            replace(folder, name, content, mode)
        return True

    def holds(self, name: str, content: bytes, mode: int = 0o600) -> bool:
        """Return whether the file has the expected content and mode."""
        return self._look(name) == (content, mode)

    def write_json(self, name: str, document: Json) -> bool:
        """Write a document as JSON, as ``write`` does."""
        return self.write(name, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())

    def remove(self, session: str) -> bool:
        """Remove our files and, if it is then empty, the session's folder; returns whether the folder existed."""
        if not self._is_of(session):
            return False
        try:
            with self._opened(create=False) as folder:
                # The identity goes last: after a removal that was killed, the next one knows whose directory this is.
                for name in sorted(filter(_is_ours, os.listdir(folder)), key=IDENTITY.__eq__):
                    os.unlink(name, dir_fd=folder)
            with suppress(OSError):  # not empty: it holds files that are not ours
                os.rmdir(self.folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._refusal("", error) from error
        return True

    def _is_of(self, session: str) -> bool:
        """Return whether the folder has no secret of another session. A damaged secret is useless and may be removed."""
        try:
            return self._secret()[1] in ("", session)
        except DamagedError:
            return True

    def _look(self, name: str) -> Tuple[bytes | None, int]:
        """A file's content and mode."""
        try:
            with self._opened(create=False) as folder:
                handle = os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None, 0
        except OSError as error:
            raise self._refusal(name, error) from error
        with os.fdopen(handle, "rb") as file:
            return file.read(), stat.S_IMODE(os.fstat(handle).st_mode)

    @contextmanager
    def _opened(self, create: bool = True) -> Iterator[int]:
        """The open folder: if its name is replaced meanwhile, files still go into the folder that was checked."""
        try:
            if create:
                os.makedirs(self.base, mode=0o700, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(self.folder, 0o700)
            folder = os.open(self.folder, _FOLDER)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._refusal("", error) from error
        try:
            self._guard(folder, mend=create)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _written(self, name: str) -> Iterator[int]:
        """The open folder for a write, which fails if the file system is full."""
        try:
            with self._opened() as folder:
                yield folder
        except OSError as error:
            raise self._refusal(name, error) from error

    def _guard(self, folder: int, mend: bool) -> None:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            raise ComputeError(f"{self.folder} belongs to another user; set session_artifacts to another directory.")
        if mend and stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(folder, 0o700)

    def _keep_first(self, folder: int, secret: bytes) -> None:
        """Link the complete file to its name. A link to an existing name fails, so the first secret stays."""
        temporary = draft(folder, IDENTITY, secret)
        try:
            with suppress(FileExistsError):
                os.link(temporary, IDENTITY, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _LINKLESS:
                raise
            _rename_first(folder, temporary)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)

    def _refusal(self, name: str, error: OSError) -> ComputeError:
        path = os.path.join(self.folder, name).rstrip("/")
        reason = error.strerror or str(error)
        return ComputeError(
            f"On the controller, {path} cannot be used: {reason}; correct that, or set session_artifacts to another directory."
        )


def base_of(given: object) -> str:
    """The directory of the controller for all sessions, as C(session_artifacts) names it, or the default."""
    return os.path.abspath(os.path.expanduser(str(given or SESSION_DIRS)))


def _rename_first(folder: int, temporary: str) -> None:
    """Give the complete file its name if no other fork has done so, on a file system without links."""
    lock_folder(folder)
    if IDENTITY not in os.listdir(folder):
        os.rename(temporary, IDENTITY, src_dir_fd=folder, dst_dir_fd=folder)


def _is_ours(name: str) -> bool:
    """Return whether it is one of our files, or a temporary file that a killed process left."""
    return name in FILES or any(name.startswith(f".{file}.") for file in FILES)
