# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents: what the parts of the collection exchange as JSON."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict

Json = Dict[str, Any]
