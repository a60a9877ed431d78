# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs of ``cluster-compute`` and the options that every verb has."""

from __future__ import annotations

import argparse
from typing import Dict, Sequence

from .words import Argument, Verb, argument, check_hosts, check_name, option, parsed

PROGRAM = "cluster-compute"
SHELLS = ("bash", "zsh", "fish")
_NAME = argument("name", nargs="?", default="", metavar="NAME", help="session; may be left out if there is only one")
_WORDS = argument("words", nargs="*", metavar="NAME")
_CHECK = option("--check", "check", "show what would change, and change nothing")


def _on(verb: str) -> Argument:
    text = "containers, such as main1,sub1; all if left out"
    return option("--on CONTAINER,…", f"session_{verb}_containers", text, type=check_hosts)


# What an argument or option of a verb gives the name of a variable is a variable of its playbook.
VERBS: Dict[str, Verb] = {
    "up": Verb(
        "launch the sessions of these files, or repair them",
        argument("files", nargs="*", metavar="FILE", help="session file: variables as YAML"),
        option("--like NAME", "session_like", "launch it again, or one like it with variables of -e", type=check_name),
        _CHECK,
        option("--wait SECONDS", "session_wait", "how long to wait while a session is PENDING"),
        runs="cluster_session session",
    ),
    "scale": Verb(
        "give a running session another number of containers",
        _NAME,
        argument("session_cluster_size", metavar="SIZE", type=int, help="number of containers, main1 included"),
        _CHECK,
        runs="cluster_session session",
    ),
    "down": Verb(
        "end sessions",
        argument("names", nargs="*", metavar="NAME", help="session or session file; with --many a pattern"),
        option("--many", "session_many", "end all sessions whose names match the pattern"),
        runs="terminate session",
    ),
    "ls": Verb(
        "list sessions, owners and agents",
        option("--all", "session_owner", "sessions of all owners", const="all"),
        option("--ended", "session_ended_too", "sessions that have ended, too"),
        runs="sessions session_info",
    ),
    "logs": Verb(
        "show the output of containers: logs NAME [CONTAINER …]",
        _WORDS,
        option("-f/--follow", "session_logs_follow", "show new lines until the session ends"),
        runs="session_logs session_logs_info",
    ),
    "exec": Verb(
        "run a command in containers: exec NAME -- COMMAND", _NAME, _on("exec"), has_command=True, runs="session_exec"
    ),
    "cp": Verb(
        "copy files to containers: cp SOURCE … NAME:DIRECTORY; or from them: cp NAME:PATH … DIRECTORY",
        argument("words", nargs="+", metavar="PATH"),
        _on("copy"),
        runs="session_copy",
    ),
    "commit": Verb(
        "make an image of what a container has: commit NAME IMAGE [CONTAINER]",
        argument("session_name", metavar="NAME", type=check_name),
        argument("session_commit_image", metavar="IMAGE"),
        argument("session_commit_container", nargs="?", metavar="CONTAINER"),
        option("--squash", "session_commit_squash", "an image of one layer"),
        runs="session_commit agent_step",
    ),
    "ssh": Verb("log in, or run a command: ssh NAME [CONTAINER] [-- COMMAND]", _WORDS, has_command=True),
    "open": Verb(
        "connect to an app and print its URL, until Ctrl-C: open NAME APP; without APP, list the apps",
        _WORDS,
        option("--browser", "browser", "open the URL in a browser"),
        option("--no-wait", "no_wait", "print the URL, and do not connect"),
    ),
    "why": Verb("show the state of a session and its reason", _NAME, runs="sessions session_info"),
    "show": Verb(
        "show all that is known of a session that runs or has ended",
        _NAME,
        option("--file", "sessions_format", "print the session file that asks for it", const="file"),
        runs="sessions session_info",
    ),
    "restart": Verb(
        "restart the containers of a session in place",
        _NAME,
        _on("restart"),
        option("--app APP", "session_restart_app", "an app, in place of containers"),
        runs="session_restart session",
    ),
    "queue": Verb("list the waiting sessions in the order of the queue", runs="sessions session_info"),
    "doctor": Verb("check that the agents are fit for sessions", runs="check_agents agent_check_info"),
    "usage": Verb(
        "show what owners have used, by month",
        option("--month YYYY-MM", "usage_month", "this month only"),
        runs="usage usage_info",
    ),
    "env": Verb(
        "list environments and presets; env build NAME … builds the images of environments",
        argument("words", nargs="*", metavar="build"),
        runs="environments environments_info",
    ),
    "hosts": Verb(
        "add [USER@]ADDRESS … adds hosts to the inventory and makes them agents; ls shows them; provision makes all agents",
        argument("action", choices=("add", "ls", "provision")),
        argument("addresses", nargs="*", metavar="[USER@]ADDRESS"),
        option("--name NAME", "host", "name of the host in the inventory; its address if left out"),
        option("--head", "head", "the first of these hosts keeps the session store"),
        option("--no-provision", "no_provision", "write the file only"),
        runs="provision_agents",
    ),
    "init": Verb(
        "ask for hosts and a first session, and write the inventory and session.yml",
        option("--yes [USER@]ADDRESS", "yes", "these hosts; ask nothing", nargs="+"),
    ),
    "completion": Verb(
        "print a completion script",
        argument("shell", choices=(*SHELLS, "words"), metavar="|".join(SHELLS)),
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
    own, rest = options().parse_known_args(words[:cut])
    return argparse.Namespace(**{**vars(parsed(PROGRAM, VERBS, [*rest, *words[cut:]], options())), **vars(own)})
