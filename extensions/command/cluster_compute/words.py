# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the command and the front end for accounts without Docker share: verbs, names, commands, and apps."""

from __future__ import annotations

import json
import os
import re
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

NAME = re.compile(r"(?=.{4,64}\Z)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
HOST = re.compile(r"[a-z](?:[a-z0-9-]{0,14}[a-z])?[1-9][0-9]{0,3}")
# The programs of the SSH runtime in each container.
RUNTIME = "/opt/cluster-compute/bin/"
Argument = Tuple[Tuple[str, ...], Mapping[str, Any]]


class MisuseError(Exception):
    """The words cannot be carried out: the message says what to write instead."""


class Verb:
    """What a verb does, its arguments, whether a command follows after ``--``, and what it runs: a playbook, and after
    a space the module whose result is the document of ``--json`` if it has another name.
    """

    def __init__(self, text: str, *arguments: Argument, has_command: bool = False, runs: str = "") -> None:
        self.text, self.arguments, self.has_command = text, arguments, has_command
        self.playbook, _space, result = runs.partition(" ")
        self.result = result or self.playbook


def argument(*flags: str, **options: Any) -> Argument:
    """An argument of a verb, as ``add_argument`` of argparse reads it."""
    return flags, options


def option(usage: str, name: str, text: str, **more: Any) -> Argument:
    """An option that gives a value a name: ``--wait SECONDS`` the word after it, ``-f/--follow`` the text true."""
    flags, space, metavar = usage.partition(" ")
    how = {"metavar": metavar} if space else {"action": "store_const", "const": "true"}
    return argument(*flags.split("/"), dest=name, help=text, **{**how, **more})


def parsed(program: str, verbs: Mapping[str, Verb], words: Sequence[str], *common: ArgumentParser) -> Namespace:
    """The verb, its arguments, and the words after ``--`` as ``command``.

    Ends the program with exit code 2 if they do not fit.
    """
    has_command = "--" in words and words[0] in verbs and verbs[words[0]].has_command
    cut = words.index("--") if has_command else len(words)
    parser = ArgumentParser(prog=program, allow_abbrev=False, parents=list(common))
    choices = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, verb in verbs.items():
        one = choices.add_parser(name, help=verb.text, description=verb.text, allow_abbrev=False)
        for flags, options in verb.arguments:
            one.add_argument(*flags, **options)
    asked = parser.parse_args(words[:cut])
    asked.command = list(words[cut + 1 :])
    return asked


def check_name(name: str) -> str:
    """The name of a session, or MisuseError."""
    if not NAME.fullmatch(name):
        raise MisuseError(f"{name!r} is no name of a session: 4 to 64 letters, digits, '-', '_' or '.'")
    return name


def check_hosts(text: str) -> List[str]:
    """The names of containers in a list with commas, each once, or MisuseError."""
    hosts = list(dict.fromkeys(text.split(",")))
    for host in hosts:
        if not HOST.fullmatch(host):
            raise MisuseError(f"{host!r} is no name of a container, such as main1 or sub1")
    return hosts


def script_of(command: Sequence[str]) -> str:
    """A command for the shell of a container: a single word is a script, several are passed on unchanged."""
    return command[0] if len(command) == 1 else shlex.join(command)


def attached(command: Sequence[str]) -> str:
    """A command for the shell of a container that ends, with all that it has started, when its connection ends."""
    return f"{RUNTIME}attached; {script_of(command)}"


def has_terminal() -> bool:
    """Whether someone types and reads: a command gets a terminal then, so that Ctrl-C reaches it."""
    return all(map(os.isatty, (0, 1, 2)))


def document_of(folder: Path, missing: str, *hosts: str) -> Dict[str, Any]:
    """What ``session.json`` of a session has, its ``folder``, its ``config`` for ssh, and the names of its containers as ``hosts``.

    MisuseError if the file is missing or damaged, or if one of ``hosts`` is no container of the session.
    """
    file = folder / "session.json"
    try:
        document: Dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        document["hosts"] = [container["hostname"] for container in document["containers"]]
        document["network"]["driver"], document["session"]["user"]["name"], [app["name"] for app in document["apps"]]
    except (FileNotFoundError, NotADirectoryError):
        raise MisuseError(missing) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise MisuseError(f"{file} is damaged: launch session {folder.name} again, which writes it") from None
    for host in set(hosts).difference(document["hosts"]):
        raise MisuseError(f"session {folder.name} has no container {host}: it has {', '.join(document['hosts'])}")
    return {**document, "folder": folder, "config": str(folder / "ssh_config")}


def apps_of(document: Mapping[str, Any]) -> List[Dict[str, str]]:
    """The apps of a session: the URL, the token as ``password`` if the URL lacks it, and the ends of a tunnel as
    ``forward`` if the port is private.
    """
    file = document["folder"] / "apps"
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    urls = dict(line.partition(" ")[::2] for line in lines)
    found = []
    for app in document["apps"]:
        url, _space, password = urls.get(app["name"], "").partition(" ")
        ends = re.search(r" -L ([0-9]+:[a-z0-9-]+:[0-9]+) ", app.get("tunnel", ""))
        forward = ends.group(1) if ends and (not url or "://127." in url) else ""
        found.append({"name": app["name"], "url": url, "password": password, "forward": forward})
    return [app for app in found if app["name"] != "ssh"]


def app_lines(app: Mapping[str, str]) -> List[str]:
    """The name and the URL of an app, and its password."""
    password = [f"  If the page asks for a password, enter {app['password']}"] if app["password"] else []
    return [f"{app['name']} {app['url']}".rstrip(), *password]


# The variable of the environment that names the directory for results: plugins/plugin_utils/_hosts/results.py.
RESULTS = "CLUSTER_COMPUTE_RESULTS"
_ENDED = ("TERMINATED", "CANCELLED", "ERROR")


def why_of(name: str, sessions: Sequence[Dict[str, Any]]) -> Tuple[Dict[str, Any], str]:
    """A session of a list and a line about its state; of the one that has ended last if none of this name is live."""
    found = [session for session in sessions if session["name"] == name]
    if not found:
        raise MisuseError(
            f"there is no session {name}, and the head keeps none: a list with ended sessions has all names"
        )
    newest = max(found, key=lambda session: (session["state"] not in _ENDED, session["created"]))
    turn = f"turn {newest['turn']} of the queue" if newest["turn"] else ""
    facts = filter(None, (newest["state"], newest["result"], turn, newest["reason"]))
    return newest, f"Session {name}: {'; '.join(facts)}"


def queue_of(sessions: Sequence[Dict[str, Any]]) -> Tuple[List[Dict[str, Any]], List[str]]:
    """The sessions of a list that wait, in the order of the queue, and a line for each."""
    waiting = sorted((one for one in sessions if one["turn"]), key=lambda one: int(one["turn"]))
    lines = [f"{one['turn']:>4}  {one['name']} of {one['owner']}: {one['reason']}" for one in waiting]
    return waiting, lines or ["No session waits."]
