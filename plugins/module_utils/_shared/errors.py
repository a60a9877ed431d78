# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The errors that users see, each one sentence: what, where, why, what to do; and text that others wrote, made safe for a terminal.

A container can print sequences that move the cursor of a terminal or set its title.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Match, Sequence, Tuple

# Colours, as progress bars and loggers print them: without them the text is the same.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
# C0 without tab and newline, DEL, C1, lone surrogates, and what changes the direction of text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_control(text: str) -> str:
    """The text with its control characters escaped, except tabs and newlines. Colours are left out.

    >>> escape_control("a\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07")
    'ared \\\\x1b]0;title\\\\x07'
    """
    plain = _COLOURS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _UNSAFE.sub(_escaped, plain)


def visible_lines(content: bytes) -> List[str]:
    """The lines of a program's output; bytes that are not UTF-8 are escapes, too."""
    lines = escape_control(content.decode("utf-8", "backslashreplace")).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _escaped(found: Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shorten_list(words: Sequence[str], most: int, between: str = ", ") -> str:
    """The first words as a part of a message, and how many more there are.

    >>> shorten_list(["a", "b", "c"], 2), shorten_list(["a", "b"], 1, "; ")
    ('a, b and 1 more', 'a; and 1 more')
    """
    more = len(words) - most
    end = " and" if between == ", " else f"{between}and"
    return between.join(words[:most]) + (f"{end} {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Failure:
    """Why something failed, on its way to a person.

    ``code`` is stable and machine-readable, and ``where`` names a host, a container or a variable. ``trace`` is the traceback of a
    bug, and ``cause`` the message without its remedy, if the failure has both.
    """

    message: str
    code: str = "failed"
    where: str = ""
    trace: str = ""
    cause: str = ""

    @classmethod
    def of_result(cls, result: Mapping[str, Any], message: str) -> Failure:
        """The failure of a failed result, which has no message of its own if something else has failed than the collection."""
        own = cls.from_json({"message": message, **(result.get("failure") or {})})
        trace, cause = str(result.get("exception") or ""), str(result.get("reason") or "")
        return cls(str(result.get("msg") or own.message), own.code, own.where, trace, cause)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """The failure of a document, which has what programs read of it."""
        own = {name: str(data.get(name) or "") for name in ("message", "code", "where")}
        return cls(own["message"], own["code"] or cls.code, own["where"])

    def to_json(self) -> Dict[str, str]:
        return {"code": self.code, "message": self.message, "where": self.where}

    def to_result(self) -> Dict[str, Any]:
        """The failed result of a module or an action."""
        result = {"failed": True, "msg": self.message, "failure": self.to_json()}
        more = {"exception": self.trace, "reason": self.cause}
        return {**result, **{name: text for name, text in more.items() if text}}


class ComputeError(Exception):
    """Anything this collection refuses or fails at.

    ``code`` is stable and machine-readable; the message is for people. ``trace`` is the traceback of a module that has a bug.
    """

    code = "failed"
    trace = ""

    def __init__(self, message: str, where: str = "") -> None:
        # A message may quote an engine, a container or a server.
        self.message = escape_control(message)
        super().__init__(self.message)
        self.where = where

    @property
    def failure(self) -> Failure:
        return Failure(self.message, self.code, self.where, self.trace)


class InputError(ComputeError):
    """A variable breaks a rule: names the variable, the value and the rule."""

    code = "input"

    def __init__(self, variable: str, value: object, rule: str) -> None:
        # A part of the variable, such as the name of a preset, may be the user's.
        message = f"{_cut(variable, 120)}: {_shown(value)}: {rule.rstrip('.')}."
        super().__init__(message, variable)
        self._value, self._rule = value, rule

    @property
    def parts(self) -> Tuple[str, str, str]:
        """Return what makes the same error in another process."""
        return self.where, str(self._value), self._rule


class ConflictError(ComputeError):
    """Something else holds the name, the address or the port."""

    code = "conflict"


class TakenError(ConflictError):
    """Something outside of the collection has taken the subnet, a port or a name since it was chosen: another one may be free."""

    code = "taken"


class EngineError(ComputeError):
    """A Docker Engine refused, or did not answer in time."""

    code = "engine"


class StateError(ComputeError):
    """The session is in a state that does not allow this."""

    code = "state"


class PendingError(StateError):
    """A session waits in the queue, and the command is to fail then."""

    code = "pending"


class LibraryError(ComputeError):
    """A Python library is missing where this runs; ``trace`` is the import's own traceback."""

    code = "library"

    def __init__(self, library: str, trace: str = "") -> None:
        message = (
            "The Python %s lacks the library %s; run %s -m pip install %s, or set ansible_python_interpreter to a Python "
            "that has the library."
        )
        super().__init__(message % (sys.executable, library, sys.executable, library))
        self.library = library
        self.trace = trace


class SessionError(ComputeError):
    """A failure of the session and of no host in particular: every host of the play has it, and another failure is its reason."""

    code = "session"


class NotFoundError(ComputeError):
    """No such session."""

    code = "not_found"


def _shown(value: object, longest: int = 80) -> str:
    """The value as a user would recognise it: control characters escaped, never longer than a line."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        # Python refuses to print integers of more than 4,300 digits.
        return "a value that is too large to print"
    return _cut(text, longest)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


class NotLaunchedError(InputError):
    """The controller has no files of the session. In check mode, an earlier task may be what would launch it."""
