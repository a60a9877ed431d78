# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Break throw-away sessions in many ways beside the sessions of others, and check that they are repaired and leave nothing.

The program runs the playbooks of the collection in which it is (docs/drill.md). It exits with 2 if a fault fails, if a container of
others changes, or if the drill cannot run. Options that it does not list are passed on to ansible-playbook.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from typing import Any

from drill_actions import Drill
from drill_commands import CommandLines
from drill_faults import DrillError, chosen
from drill_steps import Settings

# How hosts are reached, and with what: options of ansible-playbook, ansible and ansible-inventory.
OF_INVENTORY = ("--inventory", "--extra-vars", "--vault-id", "--vault-password-file")
OF_CONNECTIONS = (
    *("--user", "--private-key", "--connection", "--ssh-common-args", "--ssh-extra-args"),
    *("--connection-password-file", "--become-password-file"),
)
SHORT = {"--inventory": ["-i"], "--extra-vars": ["-e"], "--user": ["-u"], "--connection": ["-c"]}
ASKING = frozenset("-k --ask-pass -K --ask-become-pass -J --ask-vault-password --ask-vault-pass".split())
FAILED, INTERRUPTED = 2, 130
# Small, so that a drill fits beside the sessions of others.
SMALL = {"session_cpus": 0.1, "session_memory": "64m", "session_shm": "16m", "session_cluster_size": 2}


def main(words: list[str]) -> int:
    asked, rest = parsed(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # for example under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        faults = chosen(asked.fault)
        if asked.list:
            print("\n".join(fault.name for fault in faults))
            return 0
        directory = tempfile.mkdtemp(prefix="cluster-compute-drill-")
        try:
            result = drilled(asked, rest, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return shown(result, asked.file)
    except (DrillError, OSError) as error:
        print(f"drill: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("drill: interrupted; nothing of its sessions is left.", file=sys.stderr)
        return INTERRUPTED


def parsed(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of the drill, and those of ansible-playbook alone."""
    parser = argparse.ArgumentParser(prog="drill.py", description=(__doc__ or "").strip(), allow_abbrev=False)
    parser.add_argument("--fault", action="append", default=[], help="run this fault (may be repeated; default: all)")
    parser.add_argument("--list", action="store_true", help="list the faults, and run none")
    parser.add_argument("--disruptive", action="store_true", help="also run faults that stop all sessions on an agent")
    parser.add_argument(
        "--full-directory", default="", metavar="DIRECTORY", help="a directory on a small file system of the head"
    )
    parser.add_argument("--file", default="", help="write outcomes and times as JSON to this file")
    parser.add_argument(
        "--playbook-timeout", type=seconds, default=600, metavar="SECONDS", help="kill a playbook after this time"
    )
    for option in OF_INVENTORY + OF_CONNECTIONS:
        parser.add_argument(*SHORT.get(option, []), option, action="append", default=[], help="as of ansible-playbook")
    asked, rest = parser.parse_known_args(words)
    if asking := ASKING.intersection(rest):
        parser.error(f"{min(asking)}: nothing can be asked in a drill; use the option for a file with the password.")
    return asked, rest


def seconds(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def options(asked: argparse.Namespace, names: tuple[str, ...]) -> list[str]:
    """The words of options, as they were given."""
    return [f"{name}={value}" for name in names for value in getattr(asked, name[2:].replace("-", "_"))]


def drilled(asked: argparse.Namespace, rest: list[str], directory: str) -> dict[str, Any]:
    runs = CommandLines(
        directory, asked.playbook_timeout, options(asked, OF_INVENTORY), options(asked, OF_CONNECTIONS), rest
    )
    agents, head, remote = runs.hosts()
    runs.defaults = {**SMALL, "session_cluster_mode": "multi-node" if len(agents) > 1 else "single-node"}
    settings = Settings(
        faults=chosen(asked.fault),
        agents=agents,
        head=head,
        owner="drill-" + secrets.token_hex(3),
        directory=os.path.join(directory, "artifacts"),
        disruptive=asked.disruptive,
        full_directory=asked.full_directory,
        remote=remote,
    )
    return Drill(runs, settings).run(lambda line: print(line, flush=True))


def shown(result: dict[str, Any], path: str) -> int:
    """Print the verdicts, and write them to a file if asked; returns the exit code."""
    print("\n".join(result.pop("lines")))
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=4, sort_keys=True) + "\n")
    return 0 if result["passed"] else FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
