# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Short digests of documents, and what of a dataclass counts in them."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Mapping

# The metadata of a field that does not count, because it may change while the thing stays the same.
UNCOUNTED: Mapping[str, Any] = {"uncounted": True}


def digest(document: object) -> str:
    """A short stable digest of a JSON document: equal documents, equal digests."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sparse(value: Any) -> Any:
    """A dataclass as a document of the fields that count and differ from their defaults.

    A new field has its default in everything that exists, and so changes no digest.
    """
    if is_dataclass(value):
        pairs = ((known, getattr(value, known.name)) for known in fields(value))
        return {known.name: sparse(part) for known, part in pairs if _counts(known, part)}
    if isinstance(value, Mapping):
        return {name: sparse(part) for name, part in value.items()}
    return [sparse(part) for part in value] if isinstance(value, (list, tuple)) else value


def _counts(known: Field[Any], value: Any) -> bool:
    if UNCOUNTED.items() <= known.metadata.items():
        return False
    return bool(value != (known.default if known.default_factory is MISSING else known.default_factory()))
