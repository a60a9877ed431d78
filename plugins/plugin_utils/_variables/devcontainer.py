# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A C(devcontainer.json) as variables of a session. https://containers.dev/implementors/json_reference has the format."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from itertools import accumulate
from typing import Any, Callable, Dict, List, Mapping, Match, Tuple

from ...module_utils._shared import value_rules
from ...module_utils._shared.codec import Json
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.names import check_environment
from ...module_utils._shared.planning import mount_rules
from ...module_utils._shared.value_rules import check_image, check_whole

VARIABLE = "session_devcontainer"
LONGEST = 256 << 10
_MOST, _DEEPEST = 100, 50
_READ = ("image", "containerEnv", "postCreateCommand", "forwardPorts", "mounts", "workspaceFolder", "$schema")
_BUILDS = ("build", "dockerFile", "dockerComposeFile")
# Each matches to the end of the text if nothing ends it, so that no place is searched twice.
_STRING = r'"(?:[^"\\]|\\.?)*"?'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])", re.DOTALL)
_REFERENCE = re.compile(r"\$\{([A-Za-z]+)(?::([^:}]*)(?::([^}]*))?)?\}")
_UNKNOWN = ("containerEnv", "templateOption")
# With the key of each alias. Docker on Linux reads C(consistency) and does nothing with it.
_OF_MOUNT = {
    **{name: name for name in ("type", "source", "target", "readonly", "consistency")},
    **{"src": "source", "dst": "target", "destination": "target", "ro": "readonly"},
}

Resolve = Callable[[str, Any], str]


def devcontainer(
    text: str, project: str, environment: Mapping[str, str], image: Any, user: str = ""
) -> Tuple[Json, List[str]]:
    """The variables of the session by full name, and the keys of the file that have no effect.

    ``project`` is the directory of the project on the controller, ``environment`` the controller's own, and ``image`` the image that
    the session has without the file. The ID is the same each time this ``user`` launches this project, so that volumes with it in
    their names are never another user's. Raises InputError for the first value that cannot be used.
    """
    content = _parsed(text)
    name = project.rpartition("/")[2]
    identity = hashlib.sha256(f"{user}\0{project}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    names = {"localWorkspaceFolder": project, "localWorkspaceFolderBasename": name, "devcontainerId": identity}
    folder = _resolver(names, environment)("workspaceFolder", content.get("workspaceFolder") or f"/workspaces/{name}")
    names["containerWorkspaceFolder"] = folder
    names["containerWorkspaceFolderBasename"] = folder.rstrip("/").rpartition("/")[2]
    resolve = _resolver(names, environment)
    found: Json = {
        "session_image": _image(content, resolve, image),
        "session_environment": _environment(content.get("containerEnv") or {}, resolve),
        "session_bootstrap": _script(content.get("postCreateCommand") or "", folder, resolve),
        "session_apps": _apps(content.get("forwardPorts") or []),
        "session_mounts": [_mount(mount, resolve) for mount in _entries("mounts", content.get("mounts") or [])],
    }
    mount_rules.check_mounts(_key("mounts"), found["session_mounts"])
    return {name: value for name, value in found.items() if value}, [key for key in content if key not in _READ]


def _key(key: str) -> str:
    return f"{VARIABLE}: {key}"


def _parsed(text: str) -> Json:
    """The object in a text with comments and commas before closing brackets, which VS Code permits."""
    plain = _COMMENT.sub(lambda found: _text_or(found, re.sub(r"[^\n]", " ", found.group())), text)
    plain = _COMMA.sub(lambda found: _text_or(found, " "), plain)
    brackets = re.sub(_STRING, "", plain, flags=re.DOTALL)
    depths = accumulate((letter in "[{") - (letter in "]}") for letter in brackets)
    if len(text) > LONGEST or max(depths, default=0) > _DEEPEST:
        rule = "must have at most %d characters, and at most %d nested brackets" % (LONGEST, _DEEPEST)
        raise InputError(VARIABLE, text[:20], rule)
    try:
        found = json.loads(plain)
    except ValueError as error:
        raise InputError(VARIABLE, text[:20], f"must be a file of JSON, with or without comments: {error}") from None
    if not isinstance(found, dict):
        raise InputError(VARIABLE, text[:20], "must be a file with a JSON object")
    return found


def _text_or(found: Match[str], other: str) -> str:
    return found.group() if found.group().startswith('"') else other


def _resolver(names: Mapping[str, str], environment: Mapping[str, str]) -> Resolve:
    """A function that replaces the references in a value of a key. Other names stay: they may be for a shell."""

    def resolved(found: Match[str]) -> str:
        name, argument, default = found.groups()
        if name in _UNKNOWN:
            raise InputError(VARIABLE, found.group(), "must be replaced by a value: a session has nothing of this name")
        if name in ("localEnv", "env") and argument:
            return environment.get(argument, default or "")
        return names.get(name, found.group())

    def resolve(key: str, value: Any) -> str:
        if not isinstance(value, str) or "\0" in value or len(_REFERENCE.findall(value)) > _MOST:
            raise InputError(_key(key), value, "must be a string with at most %d references" % _MOST)
        return _REFERENCE.sub(resolved, value)

    return resolve


def _entries(key: str, value: Any) -> List[Any]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise InputError(_key(key), value, "must be a list of at most %d entries" % _MOST)
    return value


def _image(content: Json, resolve: Resolve, image: Any) -> str:
    if content.get("image"):
        return check_image(_key("image"), resolve("image", content["image"]))
    if not image:
        builds = next((key for key in _BUILDS if key in content), "no image")
        rule = "the session needs an image: build it, push it to a registry, and name it in session_image"
        raise InputError(VARIABLE, builds, rule)
    return ""


def _environment(value: Any, resolve: Resolve) -> Dict[str, str]:
    given = check_environment(_key("containerEnv"), value)
    found = {name: resolve(f"containerEnv: {name}", text) for name, text in given.items()}
    return check_environment(_key("containerEnv"), found)


def _script(command: Any, folder: str, resolve: Resolve) -> str:
    """The commands one after the other, in the directory of the project if something mounts it."""
    commands = list(command.values()) if isinstance(command, dict) else [command] if command else []
    if not commands:
        return ""
    scripts = [_command(one, resolve) for one in commands]
    # A line of its own ends a comment or a here-document of the command.
    steps = "".join(f"(\n{script}\n) || exit\n" for script in scripts)
    return f"if [ -d {shlex.quote(folder)} ]; then cd {shlex.quote(folder)} || exit; fi\n{steps}"


def _command(command: Any, resolve: Resolve) -> str:
    if isinstance(command, list):
        return " ".join(shlex.quote(resolve("postCreateCommand", word)) for word in command)
    return resolve("postCreateCommand", command)


def _apps(ports: Any) -> List[Json]:
    """An app without a command for each port, which publishes it."""
    found = []
    for port in _entries("forwardPorts", ports):
        text = re.sub(r"\A(?:localhost|127\.0\.0\.1):", "", str(port))
        found.append(check_whole(_key("forwardPorts"), text, 1, 65535))
    return [{"name": f"port-{port}", "port": port} for port in dict.fromkeys(found)]


def _mount(mount: Any, resolve: Resolve) -> Json:
    """A mount, as C(docker run --mount) has it or as an object."""
    parts = dict(part.partition("=")[::2] for part in mount.split(",")) if isinstance(mount, str) else mount
    parts = value_rules.check_entry(_key("mounts"), parts, tuple(_OF_MOUNT), ())
    entry = {_OF_MOUNT[key]: resolve("mounts", value) for key, value in parts.items()}
    entry.pop("consistency", None)
    if entry.pop("readonly", "false") in ("", "true", "1"):
        entry["mode"] = "ro"
    kind = entry.setdefault("type", "volume")
    if kind not in ("bind", "volume") or not {"source", "target"} <= set(entry):
        raise InputError(_key("mounts"), mount, "must be of type bind or volume, and have a source and a target")
    return entry
