# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A front end for accounts that may not use Docker: it runs the playbooks as a service account, for the caller as owner.

sudo or a forced command of SSH starts it as the service account (docs/policy.md). The caller chooses a command, a name and the
values of some variables. The owner, the inventory and all other variables are fixed. Nothing that the caller writes is a template.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

CONFIG = Path(__file__).resolve().parent / "front_end.json"
NAME = re.compile(r"(?=.{4,64}\Z)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
# The variables of a launch that a caller may set, without their prefix. The policy of the site limits their values.
VARIABLES = frozenset(
    (
        "agents agents_policy apps bootstrap cluster_mode cluster_size command command_timeout cpu_pinning cpus "
        "environment gpus grace idle_timeout image lifetime memory mounts no_new_privileges on_failure pids preset "
        "priority read_only_root resource_group shm strategy terminate_when_done torchrun torchrun_nodes torchrun_restarts wait"
    ).split()
)
TEMPLATE = re.compile(r"\{\{|\{%|\{#|#jinja2:")
PLAYBOOKS = {"launch": "cluster_session", "list": "sessions", "logs": "session_logs", "end": "terminate"}


def refuse(message: str) -> NoReturn:
    print("cluster-session: %s" % message, file=sys.stderr)
    raise SystemExit(2)


def main(arguments: list[str]) -> int:
    owner, words = caller(arguments, os.environ)
    asked = parsed(words)
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    artifacts = Path(config["artifacts"]) / owner
    if asked.action == "enter":
        return enter(artifacts / asked.name, asked.words)
    fixed: dict[str, object] = {"session_owner": owner, "session_artifacts": str(artifacts), "session_provision": False}
    if asked.action == "launch":
        fixed.update(chosen(asked.words))
        fixed["session_user"] = numbers(owner)
    if asked.name:
        fixed["session_name"] = asked.name
    return play(config, PLAYBOOKS[asked.action], fixed)


def caller(arguments: list[str], environment: dict[str, str] | os._Environ[str]) -> tuple[str, list[str]]:
    """The owner and the words of the caller: from sudo, or from a forced command, whose own arguments name the owner."""
    if environment.get("SUDO_USER"):
        owner, words = environment["SUDO_USER"], arguments
    elif arguments[:1] == ["--owner"] and len(arguments) == 2:
        owner = arguments[1]
        try:
            words = shlex.split(environment.get("SSH_ORIGINAL_COMMAND") or "")
        except ValueError as error:
            refuse("the command cannot be read: %s" % error)
    else:
        refuse("must be started by sudo, or by a forced command with --owner NAME and nothing else")
    if not OWNER.fullmatch(owner) or owner == "all":
        refuse("the account %r cannot own sessions: its name is no name of an owner" % owner)
    return owner, words


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cluster-session", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True)
    helps = {
        "launch": "launch a session, or repair it: launch NAME [VARIABLE=VALUE …]",
        "list": "list the sessions of the caller",
        "logs": "show the logs of a session",
        "enter": "log in to main1 of a session, or run a command there",
        "end": "end a session",
    }
    for action, text in helps.items():
        sub = actions.add_parser(action, help=text, description=text, allow_abbrev=False)
        if action != "list":
            sub.add_argument("name")
        if action in ("launch", "enter"):
            sub.add_argument("words", nargs=argparse.REMAINDER)
    asked = parser.parse_args(words)
    asked.name = getattr(asked, "name", "")
    asked.words = [word for place, word in enumerate(getattr(asked, "words", ())) if place or word != "--"]
    if asked.name and not NAME.fullmatch(asked.name):
        refuse("%r is no name of a session: 4 to 64 letters, digits, '-', '_' or '.'" % asked.name)
    return asked


def chosen(words: list[str]) -> dict[str, object]:
    """The variables of a launch: lists and dictionaries as JSON, anything else as text."""
    values: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in VARIABLES:
            refuse("%r must be VARIABLE=VALUE, with one of: %s" % (word, ", ".join(sorted(VARIABLES))))
        if TEMPLATE.search(text):
            refuse("%s: the value must not contain {{, {%%, {# or #jinja2:" % name)
        try:
            values["session_" + name] = json.loads(text) if text[:1] in ("[", "{") else text
            json.dumps(values, ensure_ascii=False).encode()
        except ValueError as error:
            refuse("%s: the value cannot be read: %s" % (name, error))
    # Escapes of JSON can write the characters of a template, too.
    if TEMPLATE.search(json.dumps(values, ensure_ascii=False)):
        refuse("the values must not contain {{, {%, {# or #jinja2:")
    return values


def numbers(owner: str) -> dict[str, int]:
    """The user of the containers is the caller's account, where this machine has it."""
    try:
        account = pwd.getpwnam(owner)
    except KeyError:
        return {}
    return {"uid": account.pw_uid, "gid": account.pw_gid} if account.pw_uid and account.pw_gid else {}


def play(config: dict[str, str], playbook: str, variables: dict[str, object]) -> int:
    """Run a playbook with these variables, and with no other input of the caller: neither environment nor standard input."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="cluster-session-", suffix=".json") as file:
        json.dump(variables, file)
        file.flush()
        path = str(Path(config["playbooks"]) / (playbook + ".yml"))
        own = [part for name in config.get("variables_files", "").split() for part in ("-e", "@" + name)]
        # The last file has precedence.
        command = [config["ansible_playbook"], "-i", config["inventory"], path, *own, "-e", "@" + file.name]
        folder = Path(config["playbooks"]).parent
        return run_apart(command, folder, environment(config))


def run_apart(command: list[str], folder: Path, variables: dict[str, str]) -> int:
    """Run a program that the terminal of the caller cannot stop: it can hold locks that other callers wait for.

    Ctrl-C is passed on once, so that the program can undo what it has begun.
    """
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, env=variables, start_new_session=True)
    try:
        return program.wait()
    except KeyboardInterrupt:
        os.killpg(program.pid, signal.SIGINT)
        return program.wait()


def environment(config: dict[str, str]) -> dict[str, str]:
    """The environment of the service account, and nothing of the caller's."""
    account = pwd.getpwuid(os.geteuid())
    own = {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "LANG": "C.UTF-8"}
    path = "%s:/usr/local/bin:/usr/bin:/bin" % Path(config["ansible_playbook"]).parent
    return {**own, "PATH": path, **dict(pair.split("=", 1) for pair in config.get("environment", "").split())}


def enter(folder: Path, words: list[str]) -> int:
    """SSH to main1 of the session. The client takes no commands of its own from the caller, and forwards nothing."""
    config = folder / "ssh_config"
    if not config.is_file():
        refuse("you have no session %s" % folder.name)
    options = ["-e", "none", "-o", "ClearAllForwardings=yes", "-o", "ForwardAgent=no", "-o", "PermitLocalCommand=no"]
    terminal = ["-t"] if sys.stdin.isatty() and not words else []
    command = ["ssh", "-F", str(config), *options, *terminal, "--", "main1", *([shlex.join(words)] if words else [])]
    own = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": pwd.getpwuid(os.geteuid()).pw_dir,
        "TERM": os.environ.get("TERM", "dumb"),
    }
    return subprocess.run(command, env=own, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
