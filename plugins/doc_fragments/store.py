# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the session store is. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """The option of every module that opens the session store."""

    DOCUMENTATION = r"""
options:
  state_dir:
    description:
      - The store's directory on the head.
      - The default is C(/var/lib/cluster-compute), which the role P(cluster.compute.agent#role) shares with the users of the engine.
      - Any other directory is created with mode 0700. If it exists, it must be private, shared by root, or contain a store.
    type: path
"""
