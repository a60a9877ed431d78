# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule of every variable of a request: its value in its normal form, or one sentence with variable, value and rule."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Sequence, Tuple

from .._core.errors import InputError
from .._core.model import User
from .._core.names import check_variable_name
from .._core.units import bytes_from, parse_bytes, parse_cpus
from .._core.value_rules import Bounds, check_text, check_whole
from .addresses import check_pools, parse_port_range

# A bridge has at most 1,023 ports: https://github.com/moby/moby/issues/44973
LARGEST = 1000
# https://docs.docker.com/engine/containers/resource_constraints/ : the engine refuses less than 6 MiB.
check_memory = bytes_from(6 << 20)
# MAX_ARG_STRLEN of the kernel, without the final zero: https://man7.org/linux/man-pages/man2/execve.2.html
LONGEST_ENTRY = (1 << 17) - 1
# sshd has the variables of a login in its configuration and closes every connection if that has more than 256 KiB (measured
# with OpenSSH 9.2). What this leaves is for the variables of the session, its secrets and the image.
MOST_ENVIRONMENT = LONGEST_ENTRY
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def seconds_up_to(most: int) -> Bounds[float]:
    """The rule of a number of seconds, which may have a fraction."""
    return Bounds(_check_seconds, 0, most)


def _check_seconds(variable: str, value: Any, least: int, most: int) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:
        raise InputError(variable, value, "must be a number of seconds from %d to %d" % (least, most))
    return seconds


def check_cpus(variable: str, value: Any) -> int:
    millicpus = parse_cpus(value, variable)
    # The engine refuses less than 0.01 CPU.
    if millicpus < 10:
        raise InputError(variable, value, "must be at least 0.01")
    return millicpus


def check_shm(variable: str, value: Any) -> int:
    shm = parse_bytes(value, variable)
    if shm < 1:
        raise InputError(variable, value, "must be greater than 0")
    return shm


def check_gpus(variable: str, value: Any) -> float:
    rule = "must be a whole number, or a fraction below 1 where the agents declare shares"
    try:
        gpus = float(value)
    except (TypeError, ValueError):
        raise InputError(variable, value, rule) from None
    if isinstance(value, bool) or not 0 <= gpus <= 1024 or (gpus > 1 and gpus != int(gpus)):
        raise InputError(variable, value, rule)
    return gpus


def check_group(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not _GROUP.fullmatch(value):
        raise InputError(variable, value, "must have 1 to 64 letters, digits, '-', '_' or '.'")
    return value


def check_list(variable: str, value: Any) -> Sequence[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
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


def check_environment(variable: str, value: Any) -> Dict[str, str]:
    if not isinstance(value, Mapping):
        raise InputError(variable, value, "must be a dictionary of names and values")
    environment = {}
    for name, text in value.items():
        check_variable_name(name)
        if isinstance(text, bool) or not isinstance(text, (str, int, float)):
            raise InputError(f"{variable}: {name}", text, "must be a string or a number: put it in quotes")
        # A login's environment is set by sshd, whose configuration has one line per value.
        if any(ord(letter) < 32 and letter != "\t" for letter in str(text)):
            raise InputError(f"{variable}: {name}", str(text), "must not contain newlines or control characters")
        environment[str(name)] = str(text)
    check_environment_size(variable, environment)
    return environment


def check_environment_size(variable: str, environment: Mapping[str, str]) -> None:
    """Refuse variables that are too large for a login or for the start of a program."""
    size = environment_size(environment)
    if size > MOST_ENVIRONMENT:
        rule = "must have at most %d bytes in all, names included, and has %d" % (MOST_ENVIRONMENT, size)
        raise InputError(variable, ", ".join(environment), rule)


def environment_size(environment: Mapping[str, str]) -> int:
    """The bytes that the variables take in sshd's configuration, where quotes and backslashes have an escape character.

    >>> environment_size({"A": "1", "B": 'say "hi"'})
    18
    """
    escapes = sum(text.count('"') + text.count("\\") for text in environment.values())
    texts = ['"{}={}"'.format(*item) for item in environment.items()]
    return len(" ".join(texts).encode()) - 2 + escapes if texts else 0


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


def check_notify(variable: str, value: Any) -> str:
    """A URL or a command. It may contain a token, so that messages do not repeat it."""
    if not isinstance(value, str) or re.search(r"[\x00-\x1f\x7f]", value):
        raise InputError(variable, "…", "must be a URL or a command on one line, without control characters")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme and not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise InputError(
            variable, scheme.group() + "…", "must be a URL that begins with http:// or https://, or a command"
        )
    return value


def check_path(variable: str, value: Any) -> str:
    if not isinstance(value, str) or re.search(r"[\x00-\x1f\x7f]", value):
        raise InputError(variable, value, "must be a path without control characters")
    return value


def check_user(variable: str, value: Any) -> User:
    entry = check_entry(variable, value, ("uid", "gid"), ())
    most = 2**31 - 1
    uid = check_whole(f"{variable}: uid", entry.get("uid", 1000), 1, most)
    return User(uid=uid, gid=check_whole(f"{variable}: gid", entry.get("gid", uid), 1, most))


def is_name_pattern(value: Any) -> bool:
    """
    >>> is_name_pattern("sweep-*"), is_name_pattern("sweep-1")
    (True, False)
    """
    return isinstance(value, str) and bool(set("*?[") & set(value))


def check_name_pattern(variable: str, value: Any) -> str:
    """A pattern of a shell for the names of sessions."""
    if not re.fullmatch(r"[A-Za-z0-9._*?!\[\]-]{1,64}", value):
        raise InputError(variable, value, "must be a name, or a pattern of a name's characters with '*', '?' and '[…]'")
    return str(value)


def check_network_pool(variable: str, value: Any) -> Tuple[str, ...]:
    return tuple(check_pools(check_list(variable, value)))


def check_port_range(variable: str, value: Any) -> str:
    """``FIRST-LAST``."""
    return "%d-%d" % parse_port_range(value, variable)
