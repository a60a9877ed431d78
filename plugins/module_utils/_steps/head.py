# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that work on the session store of the head, by noun."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Dict

from .._core.documents import Json
from .._core.errors import InputError
from .step import Head, Step, carry_out

if TYPE_CHECKING:
    # Ansible packs what a module imports anywhere. A host imports, and so compiles, only the noun of its call.
    from . import queue, session, sessions, store  # noqa: F401

NOUNS = frozenset({"queue", "session", "sessions", "store"})

# The nouns of launches, ends, lists and passes.
OFTEN = frozenset({"queue", "session", "sessions"})


def prepare() -> None:
    """Import the steps of these nouns."""
    for noun in OFTEN:
        import_module(f".{noun}", __package__)


def call(name: str, head: Head, params: Json) -> Json:
    """The result of a step, such as C(session.place), on the head. Raises InputError for an unknown step or parameter."""
    noun, _dot, verb = name.partition(".")
    steps: Dict[str, Step] = import_module(f".{noun}", __package__).STEPS if noun in NOUNS else {}
    if verb not in steps:
        raise InputError("call", name, "is no step of the head")
    return carry_out(name, steps[verb], head, params)
