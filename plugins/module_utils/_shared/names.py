# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for names and environment variables, and the engine's own names, made from the names of sessions and owners."""

from __future__ import annotations

import random
import re
import uuid
from typing import Any, Dict, List, Mapping, Tuple

from .codec import digest
from .constants import CONFIG_FOLDER
from .errors import InputError

_SESSION = re.compile(r"(?=.{4,64}\Z)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
# No dot: it is what separates the parts of the engine's names.
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_PREFIX = "BACKENDAI_"
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# MAX_ARG_STRLEN of the kernel, without the final zero: https://man7.org/linux/man-pages/man2/execve.2.html
LONGEST_ENTRY = (1 << 17) - 1
# sshd has the variables of a login in its configuration and closes every connection if that has more than 256 KiB (measured
# with OpenSSH 9.2). What this leaves is for the variables of the session, its secrets and the image.
MOST_ENVIRONMENT = LONGEST_ENTRY
# Instead of an owner, where lists are asked for.
ALL_OWNERS = "all"
# For apps without a port of an agent: above the ports of services, below those that the kernel takes for connections.
_FIRST_PORT, _PORTS = 20000, 9000


_ADJECTIVES = (
    "amber brave bright calm clever cosmic crisp eager early fair fleet gentle golden grand happy keen kind lively lucid lunar "
    "merry mighty modest noble proud quick quiet rapid royal sharp silent silver solar steady sunny swift tidy vivid warm wise"
).split()
_NOUNS = (
    "badger beacon birch cedar comet condor coral crane delta ember falcon fjord forest galaxy garnet glacier harbor heron island "
    "jaguar lagoon lark lynx maple meadow meteor nebula ocean orca otter panda pine planet quartz raven reef river robin summit tiger"
).split()


def check_session_name(variable: str, name: object) -> str:
    """A session's name. Raises InputError with the rule."""
    if isinstance(name, int) and not isinstance(name, bool):
        rule = "must be in quotes: YAML reads some names as numbers, such as 012345 as 5349"
        raise InputError(variable, name, rule)
    if not isinstance(name, str) or not _SESSION.fullmatch(name):
        rule = "must have 4 to 64 letters, digits, '-', '_' or '.', and must start and end with a letter or digit"
        raise InputError(variable, name, rule)
    return name


def check_owner(variable: str, owner: object) -> str:
    """An owner's name. Raises InputError with the rule."""
    if not isinstance(owner, str) or not _OWNER.fullmatch(owner):
        rule = "must have 1 to 32 letters, digits, '-' or '_', and must start and end with a letter or digit"
        raise InputError(variable, owner, rule)
    if owner == ALL_OWNERS:
        raise InputError(variable, owner, "is reserved: it stands for all owners in lists")
    return owner


def owner_from_login(login: str) -> str:
    """The owner for a login name: characters that the rule does not allow become ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", login).strip("-_")[:32].strip("-_") or "user"


def check_variable_name(name: object) -> str:
    """The name of a user's environment variable. Raises InputError with the rule."""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        rule = "must have letters, digits and '_' only, and must not start with a digit"
        raise InputError("session_environment", name, rule)
    if name.startswith(RESERVED_PREFIX):
        raise InputError(
            "session_environment", name, f"must not start with {RESERVED_PREFIX}: the session sets these variables"
        )
    return name


def check_group(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not _GROUP.fullmatch(value):
        raise InputError(variable, value, "must have 1 to 64 letters, digits, '-', '_' or '.'")
    return value


def check_environment(variable: str, value: Any) -> Dict[str, str]:
    if not isinstance(value, Mapping) and value != []:  # YAML's other word for none
        raise InputError(variable, value, "must be a dictionary of names and values")
    environment = {}
    for name, text in dict(value).items():
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


def random_name(source: random.Random | None = None) -> str:
    """A readable pair of words with a short number, as in ``calm-otter-41``."""
    chooser = source or random.SystemRandom()
    return "%s-%s-%02d" % (chooser.choice(_ADJECTIVES), chooser.choice(_NOUNS), chooser.randrange(100))


def container_names(owner: str, session: str, hostname: str, session_id: str) -> Tuple[str, str]:
    """The engine's names that a container can have: a predictable name, so that ``docker ps`` reads well, and another name that it
    gets if something else has the first.
    """
    name = f"{owner}.{session}.{hostname}"
    return name, f"{name}.{session_id[:8]}"


def local_port(session: str, app: str) -> int:
    """A port of this machine for an app that has none on its agent: always the same, and hardly ever that of another app.

    >>> local_port("3614fdf3-0e04-4a4b", "lab") == local_port("3614fdf3-0e04-4a4b", "lab")
    True
    """
    return _FIRST_PORT + int(digest([session, app]), 16) % _PORTS


def run_folder(container: str) -> str:
    """Where PID 1 of a container records what it has done.

    The folder has the ID of the container in its name, because the image may have been made from another container.

    >>> run_folder("3614fdf3-0e04-4a4b")
    '/etc/cluster-compute/run/3614fdf3-0e04-4a4b'
    """
    return f"{CONFIG_FOLDER}/run/{container}"


def installed_mark(container: str) -> str:
    """The file that says that a container has all of its files: the last one that it gets.

    >>> installed_mark("3614fdf3-0e04-4a4b")
    '/etc/cluster-compute/run/3614fdf3-0e04-4a4b/.installed'
    """
    return run_folder(container) + "/.installed"


def network_name(owner: str, session: str, session_id: str) -> str:
    """The engine's name of a network. It is never used again, because a Swarm worker may still list the old network.

    A Swarm accepts only a DNS label: no dot, at most 63 characters
    (https://github.com/moby/swarmkit/blob/master/manager/controlapi/common.go).
    """
    readable = (f"{owner}-{session}").replace(".", "-")[:54].rstrip("-_")
    return f"{readable}-{session_id[:8]}"


def container_id(session_id: str, hostname: str) -> str:
    """The ID of a container: main1 has the session's own, and that of a sub is derived from it."""
    return session_id if hostname == "main1" else str(uuid.uuid5(uuid.UUID(session_id), hostname))


# In these lists of directories, an empty entry means the directories of the system. In others, it means the working directory.
COLON_IS_SYSTEM = ("MANPATH", "INFOPATH", "TEXINPUTS", "BIBINPUTS", "BSTINPUTS")

# Variables that extend themselves, as in C(PATH: "/opt/tool/bin:$PATH"): they refer to the same name in what lies below them.


def refers_to_itself(name: str, text: str) -> bool:
    """Return whether a value has C($NAME) or C(${NAME}).

    >>> refers_to_itself("PATH", "/x:$PATH"), refers_to_itself("PATH", "/x:$PATHS"), refers_to_itself("A", "$B")
    (True, False, False)
    """
    return len(parts_of(name, text)) > 1


def expanded(name: str, text: str, value: str) -> str:
    """The text with a value in the place of its references. Without a value, the colon beside a reference goes, too, unless it
    stands for the folders of the system.

    >>> expanded("PATH", "/x:${PATH}", "/bin"), expanded("LIBRARIES", "/x${LIBRARIES:+:$LIBRARIES}", "")
    ('/x:/bin', '/x')
    """
    pieces = parts_of(name, text)
    if len(pieces) == 1:
        return text
    found = value.join(pieces)
    return found if value or name in COLON_IS_SYSTEM else re.sub(":{2,}", ":", found).strip(":")


def merged_environment(*layers: Mapping[str, str]) -> Dict[str, str]:
    """Variables of several layers: a later one overrides, or extends what it refers to.

    What no earlier layer has stays a reference, to the variable of the image.

    >>> merged_environment({"A": "1"}, {"A": "2:$A", "B": "3:$B"})
    {'A': '2:1', 'B': '3:$B'}
    """
    found: Dict[str, str] = {}
    for layer in layers:
        found.update(
            {name: expanded(name, text, found[name]) if name in found else text for name, text in layer.items()}
        )
    return found


def parts_of(name: str, text: str) -> List[str]:
    """The text between its references to itself, also in the forms for a variable that may not be set. C($$NAME) is none.

    >>> parts_of("A", "x:$A:${A:-}"), parts_of("A", "x${A:+:$A}"), parts_of("A", "$$A")
    (['x:', ':', ''], ['x:', ''], ['$$A'])
    """
    if not isinstance(text, str) or "$" not in text:
        return [text]
    own = re.escape(name)
    reference = rf"(?<![$\\])\$(?:{own}(?![A-Za-z0-9_])|\{{{own}(?::?-)?\}})"
    # A separator that is there only beside a value goes without one in any case.
    plain = re.sub(rf"\$\{{{own}:?\+(:?){reference}(:?)\}}", rf"\1${{{name}}}\2", text)
    return re.split(reference, plain)
