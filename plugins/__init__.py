# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let Python's own loader import the files of this collection: it keeps what it compiles, as for any other library.

Ansible's loader compiles every file again in each command, which takes 0.3 s of a processor.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from typing import Any


class _Loader(SourceFileLoader):
    def set_data(self, path: str, data: bytes, **mode: int) -> None:  # type: ignore[override]
        """Keep what was compiled, but never as root in a checkout of another user."""
        if os.stat(os.path.dirname(self.path)).st_uid == os.geteuid():
            super().set_data(path, data, **mode)


@lru_cache(maxsize=None)
def _finder(directory: str) -> FileFinder:
    return FileFinder(directory, (_Loader, [".py"]))


class _Files:
    """Finds the files of the collection before Ansible does, which finds its packages, and everything else."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: Any = None) -> ModuleSpec | None:
        spec = _finder(path[0]).find_spec(name) if name.startswith(__name__ + ".") else None
        return spec if spec and spec.loader else None


for _place, _other in enumerate(sys.meta_path):
    if type(_other).__name__ == "_AnsibleCollectionFinder":
        sys.meta_path.insert(_place, _Files)
        break
