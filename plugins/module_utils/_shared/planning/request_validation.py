# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of a request of the session store: on the head before a decision, and on a controller before a launch."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import lru_cache

from ..codec import DECLARATION
from ..documents import validation
from ..documents.schema import by_rule
from ..errors import ComputeError
from .request import Request

# What a request holds in another form than its variable: C(arrival) has the rules of their parts.
_OTHER_FORM = ("millicpus", "mounts", "secrets", "apps", "user", "roles")
_RULES = {
    known.name: by_rule(known.metadata[DECLARATION]["check"], known.name)
    for known in fields(Request)
    if known.name not in _OTHER_FORM
}

# A queue has many requests: their usual values take no time.
_USUAL = Request(name="", owner="").to_json()


def checked_request(document: object, sender: str) -> Request:
    """The request. Raises ComputeError, which names the sender, if it has no value that a request has there."""
    if isinstance(document, dict):
        document = {name: value for name, value in document.items() if value != _USUAL.get(name)}
    given = validation.request(document, sender)
    try:
        request = Request.from_json(given)
    except (LookupError, TypeError, ValueError):
        raise validation.refusal("request", sender, (), "a document without what a request has") from None
    if request.size != len(request.members):
        raise validation.refusal("request", sender, ("size",), request.size)
    for name, holds in _RULES.items():
        if name in given and not holds(getattr(request, name)):
            raise validation.refusal("request", sender, (name,), getattr(request, name))
    return request


@lru_cache(maxsize=16384)
def invalid_request(text: str, sender: str) -> str:
    """Return the fault of a stored request, without a full stop; empty if it has none. A decision reads the queue more than once."""
    try:
        checked_request(json.loads(text), sender)
    except ComputeError as error:
        return error.message.rstrip(".")
    return ""
