# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of values: each returns the normal form of a value, or raises one message with variable, value and rule.

The rules of C(check_plain) hold for every variable: its numbers and texts can be computed with, printed and stored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import abc
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Any, Callable, Generic, Iterator, List, Mapping, Sequence, Tuple, Type, TypeVar

from .errors import InputError, escape_control

# The grammar of https://github.com/distribution/reference: a registry, components in lower case, a tag, a digest.
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?=.{{1,512}}\Z)(?:(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def check_whole(variable: str, value: Any, least: int, most: int) -> int:
    number = value
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
        number = int(value.strip())
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InputError(variable, value, "must be a whole number from %d to %d%s" % (least, most, in_seconds(value)))
    return number


def in_seconds(value: Any) -> str:
    """Return what to write in place of a duration with a unit; empty for any other value.

    >>> in_seconds("1d"), in_seconds("5"), in_seconds("1 m")
    (' (1d is 86400 seconds)', '', '')
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", value.strip()) if isinstance(value, str) else None
    return " (%s is %d seconds)" % (found[0], int(found[1]) * _UNITS[found[2]]) if found else ""


_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Bounds(Generic[_Number]):
    """The rule of a number. Editors read its bounds in the schema of a session file."""

    rule: Callable[[str, Any, int, int], _Number]
    least: int
    most: int

    def __call__(self, variable: str, value: Any) -> _Number:
        return self.rule(variable, value, self.least, self.most)


def within(least: int, most: int) -> Bounds[int]:
    return Bounds(check_whole, least, most)


def one_of(*choices: str) -> Callable[[str, Any], str]:
    def check(variable: str, value: Any) -> str:
        if value not in choices:
            raise InputError(variable, value, f"must be one of: {', '.join(choices)}")
        return str(value)

    return check


def check_boolean(variable: str, value: Any) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in known:
        raise InputError(variable, value, "must be true or false")
    return known[str(value).lower()]


def check_text(variable: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InputError(variable, value, "must be a string")
    return value


def check_script(variable: str, value: Any) -> str:
    """A script, with the line ends of Linux: a shell takes the CR of a line as a part of its last word."""
    return with_line_ends(check_text(variable, value))


def with_line_ends(script: str) -> str:
    r"""The script without the mark that an editor of Windows writes first, and without the CR at the end of every line.

    A script whose lines end with CR alone has these from a Mac of old. One that has other lines, too, stays as it is: it may
    need its CRs.

    >>> with_line_ends("\ufeffcd /tmp\r\nls\r\n"), with_line_ends("#!/bin/sh\rls\r"), with_line_ends("a\r\nb\n")
    ('cd /tmp\nls\n', '#!/bin/sh\nls\n', 'a\r\nb\n')
    """
    text = script[1:] if script.startswith("\ufeff") else script
    *lines, last = text.split("\n")
    if not lines:
        return text.replace("\r", "\n") if text.startswith("#!") or text.endswith("\r") else text
    if not all(line.endswith("\r") for line in lines):
        return text
    return "\n".join([*(line[:-1] for line in lines), last[:-1] if last.endswith("\r") else last])


def check_image(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not _IMAGE.fullmatch(value):
        raise InputError(variable, value, "must be an image reference, as in registry/name:tag or name@sha256:…")
    return value


_MOST = 1 << 63
# The longest text: scripts are the longest values, and a plan with all values travels with each call of a module.
_LONGEST = 1 << 20
# A path, or a key.
_LONGEST_LINE = 4096
# Values in lists and dictionaries, and their nesting.
_MOST_VALUES, _DEEPEST = 100_000, 20

Check = Callable[[str, Any], Any]


def checked(check: Check) -> Check:
    """The rule of a variable, with these rules before it."""
    if hasattr(check, "__wrapped__"):
        return check

    @wraps(check)
    def both(variable: str, value: Any) -> Any:
        check_plain(variable, value)
        return check(variable, value)

    return both


def check_plain(variable: str, value: Any) -> None:
    """Raise InputError for a number without a use, and for text that has no encoding or is too long."""
    for count, (depth, item) in enumerate(_walk(value)):
        if count > _MOST_VALUES or depth > _DEEPEST:
            raise InputError(variable, "a nested value", "must have at most %d values" % _MOST_VALUES)
        if isinstance(item, (int, float)) and not -_MOST < item < _MOST:
            raise InputError(variable, item, "must be a number below 2^63")
        if isinstance(item, str):
            _check_text(variable, item)


def _check_text(variable: str, text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InputError(variable, text, "must be Unicode text without lone surrogates") from None
    if size > _LONGEST:
        raise InputError(variable, text, "must have at most %d bytes" % _LONGEST)


def _walk(value: Any) -> Iterator[Tuple[int, Any]]:
    """The value and all values in it, with their depth. A value that contains itself goes on until the caller stops."""
    waiting: List[Tuple[int, Any]] = [(0, value)]
    while waiting:
        depth, item = waiting.pop()
        yield depth, item
        if isinstance(item, abc.Mapping):
            waiting += [(depth + 1, part) for pair in item.items() for part in pair]
        elif isinstance(item, (list, tuple)):
            waiting += [(depth + 1, part) for part in item]


def check_list(variable: str, value: Any) -> Sequence[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, abc.Sequence):
        raise InputError(variable, value, "must be a list")
    return value


def check_names(variable: str, value: Any) -> Tuple[str, ...]:
    """Names of hosts, containers or apps. As in other lists of Ansible, commas separate the names in a string.

    >>> check_names("session_exec_containers", "main1, sub2")
    ('main1', 'sub2')
    """
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    return check_texts(variable, value)


def check_texts(variable: str, value: Any) -> Tuple[str, ...]:
    return tuple(check_text(variable, name) for name in check_list(variable, value))


def check_entry(variable: str, value: Any, known: Sequence[str], needed: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(value) - set(known) or set(needed) - set(value):
        more = ", ".join(name for name in known if name not in needed)
        rule = (
            f"must be a dictionary with {' and '.join(needed)}, and optionally {more}"
            if needed
            else f"must be a dictionary that has only {more}"
        )
        raise InputError(variable, value, rule)
    return value


_Entry = TypeVar("_Entry")


def entry_of(kind: Type[_Entry], variable: str, value: Any) -> _Entry:
    """An entry of a user in a dataclass of its keys. A key whose field has no default must be given."""
    known: Any = kind
    needed = [one.name for one in fields(known) if one.default is MISSING and one.default_factory is MISSING]
    given = check_entry(variable, value, [one.name for one in fields(known)], needed)
    return kind(**{name: given[name] for name in given})


def check_path(variable: str, value: Any) -> str:
    is_text = isinstance(value, str) and len(value) <= _LONGEST_LINE
    if not is_text or escape_control(value) != value or re.search("[\t\n]", value):
        rule = "must be a path on one line of at most %d characters, without control characters"
        raise InputError(variable, value, rule % _LONGEST_LINE)
    return str(value)


MOST_KEYS = 100
_LEAST_MODULUS = 256
# The types that sshd accepts, and how many parts their keys have.
_PARTS = {
    "ssh-ed25519": 2,
    "ssh-rsa": 3,
    "ecdsa-sha2-nistp256": 3,
    "ecdsa-sha2-nistp384": 3,
    "ecdsa-sha2-nistp521": 3,
    "sk-ssh-ed25519@openssh.com": 3,
    "sk-ecdsa-sha2-nistp256@openssh.com": 4,
}
# An option of a key in ``authorized_keys`` could run a command.
_RULE = "must be a public key on one line, as in id_ed25519.pub: TYPE KEY COMMENT, without options; TYPE is one of: %s"


def check_public_keys(variable: str, value: Any) -> Tuple[str, ...]:
    """The lines of a list of keys; a string is a single key."""
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, (list, tuple)) or len(keys) > MOST_KEYS:
        raise InputError(variable, value, "must be a list of at most %d public keys" % MOST_KEYS)
    return tuple(dict.fromkeys(check_public_key(variable, key) for key in keys))


def check_public_key(variable: str, value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if "PRIVATE KEY" in text:
        raise InputError(variable, "a private key", "must be the public key, which is in the file that ends with .pub")
    words = text.split(" ")
    if not text.isprintable() or len(text) > _LONGEST_LINE or len(words) < 2 or not _is_key(words[0], words[1]):
        raise InputError(variable, value, _RULE % ", ".join(_PARTS))
    return text


def _is_key(kind: str, text: str) -> bool:
    """Return whether the text is a key of this type: the type again, and the numbers of the key, each after its length."""
    try:
        rest = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    parts: List[bytes] = []
    while len(rest) >= 4:
        end = 4 + int.from_bytes(rest[:4], "big")
        if len(rest) < end:
            return False
        parts.append(rest[4:end])
        rest = rest[end:]
    if rest or len(parts) != _PARTS.get(kind) or parts[0] != kind.encode() or not all(parts):
        return False
    return kind != "ssh-rsa" or len(parts[2]) >= _LEAST_MODULUS
