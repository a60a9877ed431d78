# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether this host has the rules that keep containers from sending frames into overlay networks (overlay_guard.sh)."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import subprocess

MISSING, PRESENT = "missing", "present"
_SHOW = ("iptables", "--wait", "2", "--table", "mangle", "-S", "CLUSTER-COMPUTE")
_PATH = ":/usr/local/sbin:/usr/sbin:/sbin"
_SECONDS = 5


def overlay_guard() -> str:
    """``present``, ``missing``, or an empty text where this user cannot see the rules."""
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + _PATH, "LC_ALL": "C"}
    try:
        shown = subprocess.run(_SHOW, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if shown.returncode == 0:
        return PRESENT if " -j DROP" in shown.stdout else MISSING
    return MISSING if "No chain" in shown.stderr or "does not exist" in shown.stderr else ""
