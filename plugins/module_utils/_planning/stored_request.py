# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request of a session of the store, read where it reaches a controller: each value keeps the rule of its variable."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import fields
from typing import Callable

from .._core import arrival
from .._core.declaration import DECLARATION
from .._core.errors import InputError
from .request import Request

# What a request holds in another form than its variable: C(arrival) has the rules of their parts.
_OTHER_FORM = ("millicpus", "mounts", "secrets", "apps", "user")
_RULES = {
    known.name: known.metadata[DECLARATION]["check"] for known in fields(Request) if known.name not in _OTHER_FORM
}


def stored_request(document: object, sender: str) -> Request:
    """The request. Raises ComputeError, which names the sender, if it has no value that a request has there."""
    checked = arrival.request(document, sender)
    try:
        request = Request.from_json(checked)
    except (LookupError, TypeError, ValueError):
        raise arrival.refusal("request", sender, (), "a document without what a request has") from None
    for name, check in _RULES.items():
        value = getattr(request, name)
        if not _holds(check, name, value):
            raise arrival.refusal("request", sender, (name,), value)
    return request


def _holds(check: Callable[[str, object], object], name: str, value: object) -> bool:
    """Whether a value is its own normal form."""
    try:
        return bool(check(name, value) == value)
    except InputError:
        return False
