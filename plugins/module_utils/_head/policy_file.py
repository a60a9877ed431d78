# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of the site's policy on the head. Only root writes it, or the user whom a private store belongs to."""

from __future__ import annotations

import json
import os
import stat
import tempfile

from .._shared.codec import Json
from .._shared.constants import STATE_DIR
from .._shared.errors import StateError
from .._shared.planning.policy import SitePolicy, parse_policy
from .presence import has_policy, policy_path
from .state_folder import check_readable

_REMEDY = "write it again with provision_agents.yml and agent_policy"


def read_document(folder: str) -> Json:
    """The policy as it was given; empty without a file. Raises StateError for a file that another user could have written."""
    path = policy_path(folder)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        check_readable(folder)
        raise StateError(f"The policy {path} cannot be read: {error.strerror}; {_REMEDY}.", path) from error
    with os.fdopen(handle, encoding="utf-8") as file:
        _check_rights(path, os.fstat(handle), folder)
        try:
            document = json.load(file)
        except (ValueError, RecursionError) as error:
            raise StateError(f"The policy {path} is no JSON: {error}; {_REMEDY}.", path) from error
    if not isinstance(document, dict):
        raise StateError(f"The policy {path} is no dictionary; {_REMEDY}.", path)
    return document


def check_presence(folder: str) -> None:
    """Raise StateError without a policy, for a site that launches nothing without limits."""
    if not has_policy(folder):
        message = (
            "The head has no policy %s, and session_policy is required: nothing is launched. Check the head, or %s."
        )
        raise StateError(message % (policy_path(folder), _REMEDY), folder)


def read_policy(folder: str) -> SitePolicy:
    return parse_policy(read_document(folder))


def write_document(folder: str, document: Json) -> None:
    """Replace the policy at once: no decision reads half of it."""
    path = policy_path(folder)
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if folder == STATE_DIR:
            # Every user of the head reads it, whatever the umask of root is.
            os.chmod(os.path.dirname(path), 0o755)
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".policy-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, sort_keys=True)
            os.fchmod(handle, 0o644)
        os.replace(draft, path)
    except OSError as error:
        raise StateError(f"The policy {path} cannot be written: {error.strerror}; run this as root.", path) from error


def _check_rights(path: str, status: os.stat_result, folder: str) -> None:
    trusted = {0} if folder == STATE_DIR else {0, os.stat(folder).st_uid}
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in trusted or status.st_mode & 0o022:
        raise StateError(f"The policy {path} is not root's alone to write: remove it, then {_REMEDY}.", path)
