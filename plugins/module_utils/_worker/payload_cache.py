# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a module, which it leaves on its host for the processes of later steps.

A module arrives as an archive, and Python compiles what it imports from there in each module again: two thirds of its processor
time. From files, Python keeps what it has compiled. The controller starts a step from them (``plugin_utils/_hosts/worker_client.py``).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

# What a library has in addition to the name of the process that stays.
SUFFIX = ".library"
# A link to the Python that has run the module, which Ansible may have looked for. A library without it is replaced.
PYTHON = "python"
# Seconds after which a library is removed when another release brings its own.
_KEPT = 7 * 86400


def install(archive: str, process: str) -> None:
    """Unpack the archive of a module beside the directory of the process that stays, unless its library is there already.

    There is none if the disk has no room for it.
    """
    library = Path(process + SUFFIX)
    if not archive or os.path.exists(library / PYTHON):
        return
    with suppress(OSError):
        library.parent.mkdir(0o700, parents=True, exist_ok=True)
        own = tempfile.mkdtemp(prefix="cluster-compute-", suffix=SUFFIX, dir=library.parent)
        try:
            _unpack(archive, own)
            if not os.path.exists(library / PYTHON):
                shutil.rmtree(library, ignore_errors=True)
            os.rename(own, library)
        except Exception:
            shutil.rmtree(own, ignore_errors=True)
        _remove_old(library)


def _unpack(archive: str, own: str) -> None:
    """Write through a handle: others may own the directories above, and put a link in the place of this one."""
    handle = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with zipfile.ZipFile(archive) as files:
            # Ansible's wrapper adds a file that any Python would run.
            names = [name for name in files.namelist() if name != "sitecustomize.py"]
            files.extractall("/proc/self/fd/%d" % handle, names)
        os.symlink(sys.executable, PYTHON, dir_fd=handle)
    finally:
        os.close(handle)


def invalidate(library: str) -> None:
    """Let the next module replace the library, which may come with another Python."""
    with suppress(OSError):
        os.unlink(os.path.join(library, PYTHON))


def _remove_old(library: Path) -> None:
    for other in library.parent.glob("cluster-compute-*" + SUFFIX):
        if other != library and other.stat().st_mtime < time.time() - _KEPT:
            shutil.rmtree(other, ignore_errors=True)
