# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of ``session_secrets``: each entry becomes a ``Secret`` without its value. No error quotes a value."""

from __future__ import annotations

import re
from functools import wraps
from typing import Any, Callable, Mapping, Sequence, Tuple

from ..constants import SECRETS_FOLDER
from ..documents.plan import Mount, Secret
from ..errors import InputError
from ..names import LONGEST_ENTRY, check_variable_name
from ..value_rules import check_plain

MOST = 64
LONGEST = 64 << 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KEYS = ("name", "value", "file", "environment")
# Variables that a program needs as the session or the login sets them.
_FIXED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LD_LIBRARY_PATH", "LD_PRELOAD")


class Hidden:
    """Stands for a value in an error."""

    def __repr__(self) -> str:
        return "(hidden)"


HIDDEN = Hidden()
SECRETS = "session_secrets"


def _quiet(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """The rule with those of every value before it, whose errors would quote the value."""

    @wraps(check)
    def both(variable: str, value: Any) -> Any:
        try:
            check_plain(variable, value)
        except InputError:
            raise InputError(variable, HIDDEN, "must be a list of dictionaries with short Unicode texts") from None
        return check(variable, value)

    return both


@_quiet
def check_secrets(variable: str, value: Any) -> Tuple[Secret, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) > MOST:
        raise InputError(variable, HIDDEN, "must be a list of at most %d secrets" % MOST)
    found = tuple(_secret(variable, number, entry) for number, entry in enumerate(value, 1))
    for part in ("name", "environment"):
        given = [getattr(secret, part) for secret in found if getattr(secret, part)]
        for text in given:
            if given.count(text) > 1:
                raise InputError(variable, text, f"must be the {part} of one secret only")
    return found


def check_content(variable: str, secret: Secret, content: bytes) -> None:
    """The rule of a value, from the variable or from a file."""
    if not 0 < len(content) <= LONGEST:
        raise InputError(variable, HIDDEN, "must have 1 to %d bytes" % LONGEST)
    if not secret.environment:
        return
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError(variable, HIDDEN, "must be Unicode text to be an environment variable") from None
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text[:-1] if text.endswith("\n") else text):
        raise InputError(variable, HIDDEN, "must be one line without control characters to be an environment variable")
    if len(secret.environment) + 1 + len(content) > LONGEST_ENTRY:
        raise InputError(variable, HIDDEN, "must be shorter to be an environment variable")


def check_beside(secrets: Sequence[Secret], environment: Mapping[str, str], mounts: Sequence[Mount]) -> None:
    """The rules between the secrets and the other variables."""
    for secret in secrets:
        if secret.environment in environment:
            raise InputError(SECRETS, secret.environment, "must not be in session_environment, too")
    for mount in mounts if secrets else ():
        inner, outer = sorted((mount.target + "/", SECRETS_FOLDER + "/"), key=len, reverse=True)
        if inner.startswith(outer):
            rule = f"must not be at {SECRETS_FOLDER}, which is the directory of session_secrets"
            raise InputError("session_mounts", mount.target, rule)


def _secret(variable: str, number: int, entry: Any) -> Secret:
    if not isinstance(entry, Mapping) or set(entry) - set(_KEYS):
        raise InputError(
            variable, HIDDEN, "entry %d must be a dictionary that has only %s" % (number, ", ".join(_KEYS))
        )
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = (
            "entry %d must have a name of 1 to 64 letters, digits, '-', '_' and '.' that begins with a letter or digit"
        )
        raise InputError(variable, HIDDEN, rule % number)
    own = f"{variable}: {name}"
    value, file = entry.get("value"), entry.get("file") or ""
    if (value is None) == (not file):
        raise InputError(own, HIDDEN, "must have either a value or a file")
    check_file(own, file)
    secret = Secret(name, _variable(own, entry.get("environment") or ""))
    if value is not None and not isinstance(value, str):
        raise InputError(own, HIDDEN, "must have a string as its value: put it in quotes")
    if value is not None:
        check_content(own, secret, value.encode())
    return secret


def check_file(variable: str, file: Any) -> None:
    """The rule of a path of the controller; nothing is no path."""
    if not file:
        return
    if not isinstance(file, str) or not file.startswith(("/", "~/")) or re.search(r"[\x00-\x1f\x7f]", file):
        rule = "must have an absolute path, or one that begins with ~/, as its file; in a session file, it may be relative to that"
        raise InputError(variable, HIDDEN, rule)


def _variable(variable: str, name: Any) -> str:
    if not name:
        return ""
    if not isinstance(name, str):
        raise InputError(variable, HIDDEN, "must have the name of a variable as its environment")
    check_variable_name(name)
    if name in _FIXED or name.startswith("BACKENDAI_"):
        raise InputError(variable, name, "must not be a variable that the session sets")
    return name
