# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scripts of the SSH runtime as this release has them, beside the builder of its programs in the role ``image``."""

from __future__ import annotations

import functools
from pathlib import Path

from ...module_utils._agent.engine.runtime import Scripts

_FOLDER = Path(__file__).resolve().parents[3] / "roles" / "image" / "files"
_BUILDER = "make_runtime.sh"
# The scripts that are programs; the others are parts of them.
_PROGRAMS = ("attached", "discover_hosts", "everywhere", "init", "run_own")


@functools.lru_cache(maxsize=None)
def runtime_scripts() -> Scripts:
    """The scripts by their path in the runtime, and the applets."""
    found = sorted(path for path in _FOLDER.glob("*.sh") if path.name != _BUILDER)
    texts = {
        "bin/" + path.stem if path.stem in _PROGRAMS else "libexec/" + path.name: path.read_text(encoding="utf-8")
        for path in found
    }
    lines = (_FOLDER / "applets").read_text(encoding="utf-8").splitlines()
    applets = [name for line in lines if not line.startswith("#") for name in line.split()]
    return Scripts(texts, tuple(applets))
