# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of Ansible that each verb becomes."""

from __future__ import annotations

import argparse
import json
import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Tuple

from . import places
from .words import MisuseError, check_hosts, check_name, script_of

_PLAIN = re.compile(r"[A-Za-z0-9._/:@%+-]+")
_TEMPLATE = re.compile(r"\{[{%#]")


@dataclass(frozen=True)
class Line:
    """A line of ansible-playbook. ``result`` is the module whose result is the document of ``--json``."""

    playbook: str
    result: str
    arguments: Tuple[str, ...] = ()
    needs_inventory: bool = True


def variables(**values: Any) -> Tuple[str, ...]:
    """Options for variables: plain words as they are, anything else as JSON, so that Ansible splits nothing.

    >>> variables(session_name="train", session_exec_command="ls -l")
    ('-e', 'session_name=train', '-e', '{"session_exec_command": "ls -l"}')
    """
    options: List[str] = []
    for name, value in values.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) and _PLAIN.fullmatch(value):
            options += ["-e", f"{name}={value}"]
        else:
            # A string of JSON is one of YAML, too, where a tag keeps it from being a template.
            unsafe = "!unsafe " if isinstance(value, str) and _TEMPLATE.search(value) else ""
            options += ["-e", f'{{"{name}": {unsafe}{text}}}']
    return tuple(options)


def command(line: Line, asked: argparse.Namespace, environment: Mapping[str, str]) -> List[str]:
    """The whole line. The user's own variables come last, and have precedence."""
    try:
        inventory = places.inventory(asked, environment)
    except MisuseError:
        if line.needs_inventory:
            raise
        inventory = ["-i", "localhost,"]
    own = [word for text in asked.variables for word in ("-e", text)]
    more = [*(["-K"] if asked.become else []), *(["-" + "v" * asked.verbose] if asked.verbose else [])]
    start = [places.program("ansible-playbook"), *inventory, places.playbook(line.playbook)]
    return [*start, *line.arguments, *own, *more]


def up(asked: argparse.Namespace) -> List[Line]:
    """A launch for each session file, or of a session like another."""
    if not asked.files and not asked.like:
        raise MisuseError("up needs a session file, or --like NAME")
    like = variables(session_like=check_name(asked.like)) if asked.like else ()
    wait = variables(session_wait=asked.wait) if asked.wait else ()
    check = ("--check", "--diff") if asked.check else ()
    files: List[Tuple[str, ...]] = [("-e", f"@{_file(name)}") for name in asked.files] or [()]
    return [Line("cluster_session", "session", (*file, *like, *wait, *check)) for file in files]


def scale(asked: argparse.Namespace) -> List[Line]:
    """A launch of a session that runs, in another size."""
    given = {"session_name": check_name(asked.name), "session_cluster_size": str(asked.size), "session_scale": "true"}
    check = ("--check", "--diff") if asked.check else ()
    return [Line("cluster_session", "session", (*variables(**given), *check))]


def down(asked: argparse.Namespace) -> List[Line]:
    """An end for each name, pattern or session file."""
    names = asked.names or [places.named(asked, [])[0]]
    many = variables(session_many="true") if asked.many else ()
    return [Line("terminate", "session", (*_session_or_file(name, asked.many), *many)) for name in names]


def ls(asked: argparse.Namespace) -> List[Line]:
    """A list."""
    owners, ended = {"session_owner": "all"} if asked.all else {}, {"session_ended_too": "true"} if asked.ended else {}
    return [Line("sessions", "session_info", variables(**owners, **ended))]


def logs(asked: argparse.Namespace) -> List[Line]:
    """The logs of a session."""
    name, containers = places.named(asked, asked.words)
    if asked.follow and asked.json:
        raise MisuseError("logs -f has no end and so no JSON document: leave out -f or --json")
    chosen: Dict[str, Any] = {"session_logs_containers": check_hosts(",".join(containers))} if containers else {}
    follow = {"session_logs_follow": "true"} if asked.follow else {}
    return [Line("session_logs", "session_logs_info", variables(session_name=check_name(name), **chosen, **follow))]


def show(asked: argparse.Namespace) -> List[Line]:
    """A list of one session, or its session file."""
    name = check_name(places.named(asked, [asked.name] if asked.name else [])[0])
    whole: Dict[str, Any] = {"session_ended_too": "true", "sessions_columns": "all"}
    how = {"sessions_format": "file"} if asked.file else whole
    return [Line("sessions", "session_info", variables(session_name=name, **how))]


def restart(asked: argparse.Namespace) -> List[Line]:
    """A restart of all containers, of some, or of an app."""
    if asked.on and asked.app:
        raise MisuseError("restart takes containers with --on, or an app with --app")
    name = check_name(places.named(asked, [asked.name] if asked.name else [])[0])
    on = {"session_restart_containers": check_hosts(asked.on)} if asked.on else {}
    app = {"session_restart_app": asked.app} if asked.app else {}
    return [Line("session_restart", "session", variables(session_name=name, **on, **app))]


def execute(asked: argparse.Namespace) -> List[Line]:
    """A command in containers."""
    if not asked.command:
        raise MisuseError("exec needs a command after --: exec NAME [--on sub1,sub2] -- COMMAND")
    name = places.named(asked, [asked.name] if asked.name else [])[0]
    given = {"session_name": check_name(name), "session_exec_command": script_of(asked.command)}
    on = {"session_exec_containers": check_hosts(asked.on)} if asked.on else {}
    return [Line("session_exec", "session_exec", variables(**given, **on), needs_inventory=False)]


def copy(asked: argparse.Namespace) -> List[Line]:
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
    given["session_copy_target"] = place or "."
    on = {"session_copy_containers": check_hosts(asked.on)} if asked.on else {}
    each = [variables(**given, session_copy_source=source, **on) for _name, source in sides]
    return [Line("session_copy", "session_copy", options, needs_inventory=False) for options in each]


def commit(asked: argparse.Namespace) -> List[Line]:
    """An image of a container."""
    name, *others = asked.words
    if len(others) not in (1, 2):
        raise MisuseError("commit needs a session and the name of an image: commit NAME IMAGE [CONTAINER]")
    given: Dict[str, Any] = {"session_name": check_name(name), "session_commit_image": others[0]}
    container = {"session_commit_container": others[1]} if len(others) == 2 else {}
    squash = {"session_commit_squash": "true"} if asked.squash else {}
    return [Line("session_commit", "agent_step", variables(**given, **container, **squash))]


def env(asked: argparse.Namespace) -> List[Line]:
    """The environments, or the builds of their images."""
    if not asked.words:
        return [Line("environments", "environments_info")]
    if asked.words[0] != "build" or len(asked.words) == 1:
        raise MisuseError("env lists the environments, and env build NAME … builds their images")
    return [Line("build_environments", "environments_info", variables(environments=asked.words[1:]))]


def _file(name: str) -> str:
    if not os.path.isfile(name):
        raise MisuseError(f"{name}: there is no such session file")
    return name


def _session_or_file(name: str, many: bool) -> Tuple[str, ...]:
    if os.path.isfile(name) and name.endswith((".yml", ".yaml", ".json")):
        return ("-e", f"@{name}")
    return variables(session_name=name if many else check_name(name))


def _side(asked: argparse.Namespace, word: str) -> Tuple[str, str]:
    """The session and the path of a side of a copy; no session for a path of this machine, which may begin with ./"""
    name, colon, path = word.partition(":")
    if not colon or "/" in name or name in (".", ".."):
        return "", word
    return name or places.named(asked, [])[0], path


def lines_of(asked: argparse.Namespace) -> List[Line]:
    """The lines of a verb."""
    return [FIXED[asked.verb]] if asked.verb in FIXED else LINES[asked.verb](asked)


# Verbs without arguments, and the others.
FIXED = {name: Line("sessions", "session_info") for name in ("why", "queue")}
FIXED.update(doctor=Line("check_agents", "agent_check_info"), usage=Line("usage", "usage_info"))
LINES: Dict[str, Callable[[argparse.Namespace], List[Line]]]
LINES = {"up": up, "scale": scale, "down": down, "ls": ls, "logs": logs, "exec": execute, "cp": copy, "env": env}
LINES.update(commit=commit, show=show, restart=restart)
