# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The owner of sessions."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ..module_utils._shared import names


def owner_from_login(login: str) -> str:
    """The owner for a login name; an empty name stays empty, which means the controller's user."""
    return names.owner_from_login(login) if login else ""


class FilterModule:
    """The collection's filters."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"owner_from_login": owner_from_login}
