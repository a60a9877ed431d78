# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs that show a part of the list of sessions, or reach into a running session."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import webbrowser
from typing import Dict, List, Tuple

from . import places
from .programs import INTERRUPTED, run
from .run import FAILED, Json, View, play_all, report, shown
from .words import MisuseError, app_lines, apps_of, attached, has_terminal, queue_of, why_of


def why(asked: argparse.Namespace, listed: Json) -> Tuple[Json, List[str]]:
    """The state of a session, its turn, and the reason."""
    session, line = why_of(places.session_of(asked), listed["sessions"])
    return session, [line]


def queue(_asked: argparse.Namespace, listed: Json) -> Tuple[Json, List[str]]:
    """The sessions that wait, in the order of the queue."""
    waiting, lines = queue_of(listed["sessions"])
    return {"sessions": waiting}, lines


# The views in place of the output of Ansible.
VIEWS: Dict[str, View] = {"why": why, "queue": queue}


def show(asked: argparse.Namespace) -> int:
    """All columns of a session, or its session file."""
    return play_all(asked, _file if asked.sessions_format else None)


def _file(_asked: argparse.Namespace, found: Json) -> Tuple[Json, List[str]]:
    return {"file": found["file"]}, found["file"].splitlines()


def ssh(asked: argparse.Namespace) -> int:
    """A login or a command in a container. Without ``--json``, ssh takes the place of this program."""
    name, containers = places.named(asked, asked.words)
    if len(containers) > 1:
        raise MisuseError("ssh reaches one container: ssh NAME [CONTAINER] [-- COMMAND]")
    host = containers[0] if containers else "main1"
    # ssh would look elsewhere for a host that the configuration lacks.
    config = places.document(asked, name, host)["config"]
    terminal = ["-t"] if asked.command and has_terminal() and not asked.json else []
    words = ["ssh", "-F", config, *terminal, "--", host, *([attached(asked.command)] if asked.command else [])]
    if asked.show:
        print(shown(words, {}))
        return 0
    if not asked.json:
        os.execvp("ssh", words)
    if not asked.command:
        raise MisuseError("a login has no JSON document: name a command after --")
    done = subprocess.run(words, check=False, capture_output=True, text=True, errors="replace")
    report(asked, {"exit_code": done.returncode, "stderr": done.stderr, "stdout": done.stdout}, [])
    return done.returncode


def open_app(asked: argparse.Namespace) -> int:
    """The apps of a session, or one app: its URL, and a tunnel to it that stands until Ctrl-C."""
    name, words = places.named(asked, asked.words)
    document = places.document(asked, name)
    apps = {app["name"]: app for app in apps_of(document)}
    if len(words) > 1 or not apps.keys() >= set(words):
        raise MisuseError(f"session {name} has no app {' '.join(words)}: it has {', '.join(apps) or 'none'}")
    asked.words, chosen = words, [apps[word] for word in words] or list(apps.values())
    published = [app["port"] for app in document["apps"] if app["name"] in words]
    tunnel = _tunnel(document["config"], chosen[0]["forward"], any(published)) if words else []
    if asked.show or not tunnel or asked.no_wait:
        _present(asked, chosen, [shown(tunnel, {})] if asked.show and tunnel else [])
        return 0

    def present(tunnel: subprocess.Popen[bytes]) -> None:
        # A line of LocalCommand says that the tunnel stands. Without it, ssh has said why on standard error.
        if tunnel.stdout and tunnel.stdout.readline():
            _present(asked, chosen, [])

    code = run(tunnel, present, interrupt=signal.SIGINT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return code if code in (0, INTERRUPTED) else FAILED


def _present(asked: argparse.Namespace, apps: List[Dict[str, str]], lines: List[str]) -> None:
    """Print the apps, and open the only one in a browser if that is asked."""
    texts = lines or [line for app in apps for line in app_lines(app)]
    report(asked, {"apps": apps}, texts or ["The session has no app."])
    if asked.browser and asked.words and not asked.show and apps[0]["url"]:
        webbrowser.open(apps[0]["url"])


def _tunnel(config: str, forward: str, published: bool) -> List[str]:
    """The line of ssh that connects a port of this machine to an app; none for a public app, or one that this machine publishes."""
    settings = subprocess.run(["ssh", "-G", "-F", config, "main1"], capture_output=True, text=True, check=False).stdout
    is_proxied = re.search(r"^proxy(command|jump) (?!none$)", settings, re.MULTILINE)
    is_here = re.search(r"^hostname (127\.|localhost$)", settings, re.MULTILINE) and not is_proxied
    if not forward or (published and is_here):
        return []
    own = ("ExitOnForwardFailure=yes", "ConnectTimeout=30", "PermitLocalCommand=yes", "LocalCommand=echo")
    return ["ssh", "-NT", *(word for option in own for word in ("-o", option)), "-F", config, "-L", forward, "main1"]
