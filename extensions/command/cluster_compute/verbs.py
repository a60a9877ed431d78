# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs of ``cluster-compute`` and the options that every verb has."""

from __future__ import annotations

import argparse
from typing import Dict, Sequence

from .words import Verb, argument, parsed

PROGRAM = "cluster-compute"
SHELLS = ("bash", "zsh", "fish")
_NAME = argument("name", nargs="?", default="", metavar="NAME", help="session; may be left out if there is only one")
_ON = argument("--on", default="", metavar="CONTAINER,…", help="containers, such as main1,sub1; all if left out")


VERBS: Dict[str, Verb] = {
    "up": Verb(
        "launch the sessions of these files, or repair them",
        (
            argument("files", nargs="*", metavar="FILE", help="session file: variables as YAML"),
            argument(
                "--like",
                default="",
                metavar="NAME",
                help="launch this session again, or one like it with the variables of -e",
            ),
            argument("--check", action="store_true", help="show the plan, and change nothing"),
            argument("--wait", default="", metavar="SECONDS", help="how long to wait while a session is PENDING"),
        ),
    ),
    "scale": Verb(
        "give a running session another number of containers",
        (
            argument("name", metavar="NAME"),
            argument("size", metavar="SIZE", type=int, help="number of containers, main1 included"),
            argument("--check", action="store_true", help="show what would change, and change nothing"),
        ),
    ),
    "down": Verb(
        "end sessions",
        (
            argument("names", nargs="*", metavar="NAME", help="session or session file; with --many a pattern"),
            argument("--many", action="store_true", help="end all sessions whose names match the pattern"),
        ),
    ),
    "ls": Verb(
        "list sessions, owners and agents",
        (
            argument("--all", action="store_true", help="sessions of all owners"),
            argument("--ended", action="store_true", help="sessions that have ended, too"),
        ),
    ),
    "logs": Verb(
        "show the output of containers: logs NAME [CONTAINER …]",
        (
            argument("words", nargs="*", metavar="NAME"),
            argument("-f", "--follow", action="store_true", help="show new lines until the session ends"),
        ),
    ),
    "exec": Verb("run a command in containers: exec NAME -- COMMAND", (_NAME, _ON), has_command=True),
    "cp": Verb(
        "copy files to containers: cp SOURCE … NAME:DIRECTORY; or from them: cp NAME:PATH … DIRECTORY",
        (argument("words", nargs="+", metavar="PATH"), _ON),
    ),
    "commit": Verb(
        "make an image of what a container has: commit NAME IMAGE [CONTAINER]",
        (
            argument("words", nargs="+", metavar="NAME"),
            argument("--squash", action="store_true", help="an image of one layer"),
        ),
    ),
    "ssh": Verb(
        "log in to a container, or run a command there: ssh NAME [CONTAINER] [-- COMMAND]",
        (argument("words", nargs="*", metavar="NAME"),),
        has_command=True,
    ),
    "open": Verb(
        "connect to an app and print its URL, until Ctrl-C: open NAME APP; without APP, list the apps",
        (
            argument("words", nargs="*", metavar="NAME"),
            argument("--browser", action="store_true", help="open the URL in a browser"),
            argument("--no-wait", action="store_true", help="print the URL, and do not connect"),
        ),
    ),
    "why": Verb("show the state of a session and its reason", (_NAME,)),
    "show": Verb(
        "show all that is known of a session that runs or has ended",
        (_NAME, argument("--file", action="store_true", help="print the session file that asks for it")),
    ),
    "restart": Verb(
        "restart the containers of a session in place",
        (_NAME, _ON, argument("--app", default="", metavar="APP", help="an app of main1, in place of containers")),
    ),
    "queue": Verb("list the waiting sessions in the order of the queue"),
    "doctor": Verb("check that the agents are fit for sessions"),
    "usage": Verb("show what owners have used, by month"),
    "env": Verb(
        "list environments; env build NAME … builds their images", (argument("words", nargs="*", metavar="build"),)
    ),
    "hosts": Verb(
        "add [USER@]ADDRESS … writes hosts to hosts.yml and makes them agents; ls shows the hosts; provision makes all agents",
        (
            argument("action", choices=("add", "ls", "provision")),
            argument("addresses", nargs="*", metavar="[USER@]ADDRESS"),
            argument("--name", default="", help="name of the host in the inventory; its address if left out"),
            argument("--head", action="store_true", help="the first of these hosts keeps the session store"),
            argument("--no-provision", action="store_true", help="write the file only"),
        ),
    ),
    "init": Verb(
        "ask for hosts and a first session, and write hosts.yml and session.yml",
        (argument("--yes", nargs="+", default=[], metavar="[USER@]ADDRESS", help="these hosts; ask nothing"),),
    ),
    "completion": Verb(
        "print a completion script",
        (argument("shell", choices=(*SHELLS, "words"), metavar="|".join(SHELLS)),),
        has_command=True,
    ),
}


def options() -> argparse.ArgumentParser:
    """The options that stand before or after the verb."""
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add = common.add_argument
    add("-i", "--inventory", action="append", default=[], metavar="FILE", help="inventory of Ansible")
    add("--local", action="store_true", help="this machine is the only agent")
    add("-K", "--ask-become-pass", dest="become", action="store_true", help="ask for the password of sudo")
    add("-e", dest="variables", action="append", default=[], metavar="NAME=VALUE", help="further variables")
    add("--show", action="store_true", help="print the commands instead of running them")
    add("--json", action="store_true", help="print one JSON document")
    add("-v", dest="verbose", action="count", default=0, help="show each task of Ansible")
    return common


def read(words: Sequence[str]) -> argparse.Namespace:
    """All that the words ask for. Ends the program with exit code 2 if they do not fit."""
    cut = words.index("--") if "--" in words else len(words)
    common = options()
    own, rest = common.parse_known_args(words[:cut])
    asked = parsed(PROGRAM, VERBS, [*rest, *words[cut:]], [common])
    return argparse.Namespace(**{**vars(asked), **vars(own)})
