# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the lines of Ansible, and read the results of their modules."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from . import places
from .lines import Line, command, lines_of
from .programs import INTERRUPTED, run
from .words import RESULTS

# Exit codes: of a failure, of a session that waits, of unreachable hosts as ansible-playbook.
FAILED, PENDING, UNREACHABLE = 1, 3, 4
Json = Dict[str, Any]
# From what is asked and the result of a module, a document and lines for people.
View = Callable[[argparse.Namespace, Json], Tuple[Json, List[str]]]


def shown(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """A line for a shell, with what is added to the environment."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in environment.items()), shlex.join(words)])


def play(line: Line, asked: argparse.Namespace, *, quiet: bool) -> Tuple[int, Json]:
    """Run a line. Returns the exit code of this command, and the result of the module.

    With ``quiet``, standard output is left to the caller: details of ``-v`` go to standard error.
    """
    words = command(line, asked, os.environ)
    with tempfile.TemporaryDirectory(prefix="cluster-compute-") as folder:
        # Playbooks take relative paths from PWD, which programs that start this one may leave as it was.
        environment = {**os.environ, **places.configuration(os.environ), RESULTS: folder, "PWD": os.getcwd()}
        output = (sys.stderr if asked.verbose else subprocess.DEVNULL) if quiet else None
        code, file = run(words, env=environment, stdout=output), Path(folder) / f"{line.result}.json"
        result: Json = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if code == 0:
        sessions = result.get("sessions", []) if line.playbook == "cluster_session" else []
        return (PENDING if any(one["state"] == "PENDING" for one in sessions) else 0), result
    is_pending = result.get("failure", {}).get("code") == "pending"
    code = PENDING if is_pending else code if code in (UNREACHABLE, INTERRUPTED) else FAILED
    return code, {**result, "failed": True, "exit_code": result.get("exit_code", code)}


def play_all(asked: argparse.Namespace, view: View | None = None) -> int:
    """Show the lines of a verb, or run one after the other until one fails.

    Returns the code of the failure, or else whether a session waits. A view takes the place of the output of Ansible.
    """
    lines = lines_of(asked)
    if asked.show:
        print("\n".join(shown(command(line, asked, os.environ), places.configuration(os.environ)) for line in lines))
        return 0
    results: List[Json] = []
    worst = 0
    for line in lines:
        code, result = play(line, asked, quiet=bool(asked.json or view))
        results.append(result)
        worst = code or worst
        if code not in (0, PENDING):
            break
    document = {"results": results} if asked.verb in ("up", "scale", "down", "cp") else results[0]
    report(asked, *(view(asked, document) if view and not worst else (document, [])))
    return worst


def report(asked: argparse.Namespace, document: Json, texts: Sequence[str]) -> None:
    """Print a document, or lines for people if there are any."""
    if asked.json or texts:
        print(json.dumps(document, indent=2, sort_keys=True) if asked.json else "\n".join(texts), flush=True)
