# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of Ansible that each verb becomes."""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any, List, Mapping, NamedTuple, Tuple

from . import places
from .verbs import VERBS
from .words import MisuseError, check_hosts, check_name, script_of

_PLAIN = re.compile(r"[A-Za-z0-9._/:@%+-]+")
_PATTERN = re.compile(r"[*?\[]")
_TEMPLATE = re.compile(r"\{[{%#]")
# How variables of the playbooks begin, and the playbooks that reach a session by its own files alone.
_VARIABLES, _BY_SSH = ("session", "usage"), ("session_exec", "session_copy")


class Line(NamedTuple):
    """A line of ansible-playbook. ``result`` is the module whose result is the document of ``--json``."""

    playbook: str
    result: str
    arguments: Tuple[str, ...] = ()


def variables(**values: Any) -> Tuple[str, ...]:
    """Options for variables: plain words as they are, anything else as JSON, so that Ansible splits nothing.

    >>> variables(session_name="train", session_exec_command="ls -l")
    ('-e', 'session_name=train', '-e', '{"session_exec_command": "ls -l"}')
    """
    return tuple(word for name, value in values.items() for word in ("-e", _assigned(name, value)))


def _assigned(name: str, value: Any) -> str:
    if isinstance(value, (int, str)) and _PLAIN.fullmatch(str(value)):
        return f"{name}={value}"
    # A string of JSON is one of YAML, too, where a tag keeps it from being a template.
    unsafe = "!unsafe " if isinstance(value, str) and _TEMPLATE.search(value) else ""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # YAML reads no DEL
    return f'{{"{name}": {unsafe}{text}}}'


def command(line: Line, asked: argparse.Namespace, environment: Mapping[str, str]) -> List[str]:
    """The whole line. The user's own variables come last, and have precedence."""
    try:
        inventory = places.inventory(asked, environment)
    except MisuseError:
        if line.playbook not in _BY_SSH:
            raise
        inventory = ["-i", "localhost,"]
    own = [word for text in asked.variables for word in ("-e", text)]
    more = [*(["-K"] if asked.become else []), *(["-" + "v" * asked.verbose] if asked.verbose else [])]
    start = [places.program("ansible-playbook"), *inventory, places.playbook(line.playbook)]
    return [*start, *line.arguments, *own, *more]


def lines_of(asked: argparse.Namespace) -> List[Line]:
    """The lines of a verb."""
    return MORE[asked.verb](asked) if asked.verb in MORE else [_line(asked)]


def _line(asked: argparse.Namespace, *options: str, **more: Any) -> Line:
    """The line of a verb: these options, and the variables that its words name."""
    named = {"session_name": places.session_of(asked)} if "name" in asked else {}
    given = {name: value for name, value in vars(asked).items() if name.startswith(_VARIABLES)}
    chosen = {name: value for name, value in {**named, **more, **given}.items() if value is not None}
    check = ("--check", "--diff") if "check" in asked and asked.check else ()
    verb = VERBS[asked.verb]
    return Line(verb.playbook, verb.result, (*options, *variables(**chosen), *check))


def _up(asked: argparse.Namespace) -> List[Line]:
    """A launch for each session file, or of a session like another."""
    if not asked.files and not asked.session_like:
        raise MisuseError("up needs a session file, or --like NAME")
    return [_line(asked, "-e", f"@{places.session_file(name)}") for name in asked.files] or [_line(asked)]


def _scale(asked: argparse.Namespace) -> List[Line]:
    """A launch of a session that runs, in another size."""
    return [_line(asked, session_scale="true")]


def _down(asked: argparse.Namespace) -> List[Line]:
    """An end for each name, pattern or session file."""
    return [_end(asked, name) for name in asked.names or [places.named(asked, [])[0]]]


def _end(asked: argparse.Namespace, name: str) -> Line:
    if os.path.isfile(name) and name.endswith((".yml", ".yaml", ".json")):
        return _line(asked, "-e", f"@{places.session_file(name)}")
    # Without --many, the playbook lists the sessions that match a pattern, and ends none.
    return _line(asked, session_name=name if asked.session_many or _PATTERN.search(name) else check_name(name))


def _logs(asked: argparse.Namespace) -> List[Line]:
    """The logs of a session."""
    name, containers = places.named(asked, asked.words)
    if asked.session_logs_follow and asked.json:
        raise MisuseError("logs -f has no end and so no JSON document: leave out -f or --json")
    chosen = check_hosts(",".join(containers)) if containers else None
    return [_line(asked, session_name=name, session_logs_containers=chosen)]


def _show(asked: argparse.Namespace) -> List[Line]:
    """A list of one session, or its session file."""
    return [_line(asked, **({} if asked.sessions_format else {"session_ended_too": "true", "sessions_columns": "all"}))]


def _why(asked: argparse.Namespace) -> List[Line]:
    """A list of one session, which may have ended."""
    return [_line(asked, session_ended_too="true")]


def _restart(asked: argparse.Namespace) -> List[Line]:
    """A restart of all containers, of some, or of an app."""
    if asked.session_restart_containers and asked.session_restart_app:
        raise MisuseError("restart takes containers with --on, or an app with --app")
    return [_line(asked)]


def _exec(asked: argparse.Namespace) -> List[Line]:
    """A command in containers."""
    if not asked.command:
        raise MisuseError("exec needs a command after --: exec NAME [--on sub1,sub2] -- COMMAND")
    return [_line(asked, session_exec_command=script_of(asked.command))]


def _cp(asked: argparse.Namespace) -> List[Line]:
    """A copy for each source."""
    *sources, target = asked.words
    if not sources:
        raise MisuseError("cp needs a source and a target: cp SOURCE … NAME:DIRECTORY, or cp NAME:PATH … DIRECTORY")
    to, place = _side(asked, target)
    sides = [_side(asked, source) for source in sources]
    names = {name for name, _path in (*sides, (to, place)) if name}
    if len(names) != 1 or any(bool(name) == bool(to) for name, _path in sides):
        raise MisuseError("cp copies between this machine and one session: NAME:PATH must name the side in the session")
    given = {"session_name": check_name(names.pop()), "session_copy_direction": "to" if to else "from"}
    return [_line(asked, **given, session_copy_target=place or ".", session_copy_source=one) for _name, one in sides]


def _side(asked: argparse.Namespace, word: str) -> Tuple[str, str]:
    """The session and the path of a side of a copy; no session for a path of this machine, which may begin with ./"""
    name, colon, path = word.partition(":")
    if not colon or "/" in name or name in (".", ".."):
        return "", word
    return name or places.named(asked, [])[0], path


def _env(asked: argparse.Namespace) -> List[Line]:
    """The environments, or the builds of their images."""
    if not asked.words:
        return [_line(asked)]
    if asked.words[0] != "build" or len(asked.words) == 1:
        raise MisuseError("env lists the environments, and env build NAME … builds their images")
    return [Line("build_environments", "environments_info", variables(environments=asked.words[1:]))]


# The verbs that need more than the variables that their words name.
MORE = {make.__name__[1:]: make for make in (_up, _scale, _down, _logs, _show, _why, _restart, _exec, _cp, _env)}
