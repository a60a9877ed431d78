# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends notifications in the background: a program without Ansible, which C(_notification) starts.

It reads C({"target": …, "documents": […]}) from its standard input, and detaches itself from the process that started it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import syslog
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, Dict

TRIES = 3
# Seconds: for each try of a URL, for each try of a command, and between tries.
URL_PATIENCE, COMMAND_PATIENCE = 10.0, 60.0
PAUSES = (1.0, 5.0)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection is a failure: the browser's rule would repeat the request without its content, elsewhere."""

    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


def post(url: str, content: bytes) -> str:
    """Send the content once; returns why it failed, or an empty text."""
    headers = {"Content-Type": "application/json", "User-Agent": "cluster.compute"}
    request = urllib.request.Request(url, data=content, headers=headers, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=URL_PATIENCE) as answer:
            return "" if 200 <= answer.status < 300 else "HTTP status %d" % answer.status
    except urllib.error.HTTPError as error:
        return "HTTP status %d" % error.code
    except (OSError, ValueError, HTTPException) as error:
        return type(error).__name__


def run(command: str, content: bytes) -> str:
    """Run a command of the shell with the content as its input; returns why it failed, or an empty text."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(
            command, shell=True, input=content, timeout=COMMAND_PATIENCE, check=False, **quiet  # type: ignore[call-overload]
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it ran for more than %d s" % COMMAND_PATIENCE
    return "exit code %d" % done.returncode if done.returncode else ""


def deliver(target: str, document: Dict[str, Any]) -> str:
    """Try to send a document; returns why the last try failed, or an empty text. The target may contain a token: it is not named."""
    # With an end of line, a command that appends to a file writes lines of JSON.
    content = json.dumps(document, sort_keys=True).encode() + b"\n"
    attempt = post if re.match(r"https?://", target) else run
    problem = ""
    for number in range(TRIES):
        problem = attempt(target, content)
        if not problem:
            return ""
        time.sleep(PAUSES[number] if number < len(PAUSES) else 0)
    return problem


def main() -> None:
    given = json.load(sys.stdin)
    # Twice, so that the sender has neither a parent nor a terminal.
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    for document in given["documents"]:
        problem = deliver(given["target"], document)
        if problem:
            event, name = document["event"], document["session"].get("name")
            message = "cluster.compute: the notification that session %s is %s was not delivered: %s"
            syslog.syslog(syslog.LOG_WARNING, message % (name, event, problem))


if __name__ == "__main__":
    main()
