# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The login for a registry that `docker login` has stored on the controller: in its file, or with a credential helper."""

from __future__ import annotations

import base64
import binascii
import json
import os
import shutil
import subprocess
from typing import Dict

from ...module_utils._shared.codec import Json
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.image_reference import HUB, registry_of

HUB_KEY = "https://index.docker.io/v1/"
HELPER_TIMEOUT = 20
# A credential helper returns this user name with an identity token.
TOKEN_USER = "<token>"


def login_for(reference: str, folder: str = "") -> Dict[str, str]:
    """The options of the module ``image`` for a login; empty if the controller has none for the image's registry."""
    registry = registry_of(reference)
    config = _config(folder or os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker"))
    helper = (config.get("credHelpers") or {}).get(registry) or config.get("credsStore")
    keys = [HUB_KEY] if registry == HUB else [registry, "https://" + registry, "http://" + registry]
    for key in keys:
        found = _from_helper(helper, key) if helper else _from_file((config.get("auths") or {}).get(key) or {})
        if found:
            return found
    return {}


def _config(folder: str) -> Json:
    path = os.path.join(folder, "config.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ComputeError(f"{path} on the controller cannot be read: {error}; correct or remove the file.") from error
    return found if isinstance(found, dict) else {}


def _from_file(entry: Json) -> Dict[str, str]:
    if entry.get("identitytoken"):
        return {"identity_token": str(entry["identitytoken"])}
    try:
        text = base64.b64decode(entry.get("auth") or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return {}
    username, colon, password = text.partition(":")
    return {"username": username, "password": password} if colon else {}


def _from_helper(helper: str, key: str) -> Dict[str, str]:
    """The helper returns the secret through a pipe: https://github.com/docker/docker-credential-helpers."""
    program = shutil.which("docker-credential-" + os.path.basename(helper))
    if not program:
        return {}
    try:
        done = subprocess.run(
            [program, "get"], input=key, capture_output=True, text=True, check=False, timeout=HELPER_TIMEOUT
        )
        found = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    if not found.get("Username"):
        return {}
    if found["Username"] == TOKEN_USER:
        return {"identity_token": str(found.get("Secret") or "")}
    return {"username": str(found["Username"]), "password": str(found.get("Secret") or "")}
