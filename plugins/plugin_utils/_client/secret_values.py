# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a session's secrets, which only the controller has: from ``session_secrets``, or from its files."""

from __future__ import annotations

import base64
import os
from typing import Any, Dict, Mapping, Sequence

from ansible.errors import AnsibleError

from ...module_utils._agent.engine.secrets import SecretFiles
from ...module_utils._agent.ssh.config_files import set_env
from ...module_utils._shared.documents.plan import Secret, Session
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.names import environment_size
from ...module_utils._shared.planning.secret_rules import HIDDEN, LONGEST, SECRETS, check_content, check_file
from .request_cache import KeptRequests

# A file that Ansible Vault has encrypted is longer than its content: hexadecimal digits of hexadecimal digits, and line ends.
_LONGEST_FILE = 5 * LONGEST
# They share the configuration of sshd with session_environment.
_MOST_BYTES = LONGEST


def plain_secrets(given: Any) -> Any:
    """The variable with values as strings: before ansible-core 2.19, a value from Ansible Vault is an object of its own."""
    if not isinstance(given, (list, tuple)):
        return given
    return [
        {key: str(item) if "Vault" in type(item).__name__ else item for key, item in entry.items()}
        if isinstance(entry, Mapping)
        else entry
        for entry in given
    ]


def secret_files(wanted: Sequence[Secret], given: Any) -> Dict[str, str]:
    """The paths in the variable, by the name of the secret."""
    return _given(wanted, given, "file")


def read_secrets(
    wanted: Sequence[Secret], given: Any, loader: Any, kept: Mapping[str, str] | None = None
) -> Dict[str, bytes]:
    """The content of every secret of a session. Raises InputError if one is missing or breaks a rule.

    ``kept`` are the paths that this controller keeps of the session. A path never comes from a plan or a stored request.
    """
    values, files = _given(wanted, given, "value"), {**(kept or {}), **_given(wanted, given, "file")}
    contents = {}
    for secret in wanted:
        variable = f"{SECRETS}: {secret.name}"
        if secret.name in values:
            contents[secret.name] = values[secret.name].encode()
        elif secret.name in files:
            check_file(variable, files[secret.name])
            contents[secret.name] = _read(variable, files[secret.name], loader)
        else:
            raise InputError(
                variable, HIDDEN, "must be given again: the session needs it, and only its launch has known the value"
            )
        check_content(variable, secret, contents[secret.name])
    return contents


def _given(wanted: Sequence[Secret], given: Any, key: str) -> Dict[str, str]:
    entries = [entry for entry in plain_secrets(given) or () if isinstance(entry, Mapping)] if wanted else []
    names = {secret.name for secret in wanted}
    return {
        entry["name"]: entry[key]
        for entry in entries
        if entry.get("name") in names and isinstance(entry.get(key), str) and entry[key]
    }


def delivery(wanted: Sequence[Secret], contents: Mapping[str, bytes]) -> SecretFiles:
    """Return what a container gets: the files, and the variables that some of them are, too."""
    variables = {
        secret.environment: contents[secret.name].decode().removesuffix("\n") for secret in wanted if secret.environment
    }
    if environment_size(variables) > _MOST_BYTES:
        rule = "must have at most %d bytes in all environment variables" % _MOST_BYTES
        raise InputError(SECRETS, ", ".join(variables), rule)
    files = {name: base64.b64encode(content).decode() for name, content in contents.items()}
    return SecretFiles(files, variables, set_env(variables).partition(" ")[2])


def delivered(session: Session, given: Any, loader: Any, artifacts: str) -> SecretFiles | None:
    """The values of a session's secrets; none without secrets."""
    if not session.secrets:
        return None
    kept = KeptRequests(artifacts).files(session.id)
    return delivery(session.secrets, read_secrets(session.secrets, given, loader, kept))


def _read(variable: str, path: str, loader: Any) -> bytes:
    """A file of the controller, decrypted if Ansible Vault has encrypted it."""
    full = os.path.expanduser(path)
    try:
        if os.path.getsize(full) > _LONGEST_FILE:
            raise InputError(variable, HIDDEN, "must have 1 to %d bytes" % LONGEST)
        content, _shown = loader._get_file_contents(full)
    except (OSError, AnsibleError) as error:
        reason = getattr(error, "strerror", None) or "Ansible cannot read or decrypt it"
        raise InputError(variable, path, f"must be a file that the controller can read: {reason}") from None
    return bytes(content)
