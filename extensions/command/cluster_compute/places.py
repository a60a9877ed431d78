# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where things are: the playbooks, Ansible, the inventory, and the files of sessions."""

from __future__ import annotations

import argparse
import json
import locale
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from .words import MisuseError, check_name, document_of

# Inventories that are found in the working directory.
FOUND = ("cluster-compute.yml", "hosts.yml")
NO_INVENTORY = (
    "no inventory: name one with -i FILE or ANSIBLE_INVENTORY, write hosts.yml into this directory (cluster-compute "
    "init asks for the hosts), or use this machine with --local"
)
NO_FILES = (
    "session %s has no files in %s: only the machine that launched it has its keys; if the inventory or the session file sets "
    "session_artifacts, repeat it as -e session_artifacts=DIRECTORY"
)
WAITS = "session {0} has no containers yet: cluster-compute why {0} shows what it waits for"
NO_VARIABLES = (
    "%s%s: %s; a session file is YAML in UTF-8, with a variable and its value on each line, such as session_name: train, and lists "
    "and dictionaries indented below their variable"
)


def collection() -> Path:
    """The directory of the collection: the checkout, the installed collection, or its copy beside this package."""
    here = Path(__file__).resolve()
    beside = here.parents[1] / "ansible_collections" / "cluster" / "compute"
    return beside if beside.is_dir() else here.parents[3]


def program(name: str) -> str:
    """A program of Ansible: beside this Python, or else in the search path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise MisuseError(f"{name} was not found: run make .venv here, or install ansible-core for {sys.executable}")
    return found


def playbook(name: str) -> str:
    """The path of a playbook of the collection."""
    return str(collection() / "playbooks" / f"{name}.yml")


def configuration(environment: Mapping[str, str]) -> Dict[str, str]:
    """The collection's own configuration of Ansible, unless the user has one for this directory, and a locale that Ansible can use.

    Ansible ignores a configuration in a directory that all users can write to.
    """
    own, is_safe = collection() / "ansible.cfg", not os.stat(".").st_mode & stat.S_IWOTH
    is_chosen = environment.get("ANSIBLE_CONFIG") or (is_safe and os.path.exists("ansible.cfg"))
    return {**({} if is_chosen or not own.exists() else {"ANSIBLE_CONFIG": str(own)}), **_locale()}


def _locale() -> Dict[str, str]:
    """UTF-8, without which Ansible does not start, where the locale of the user has another encoding or does not exist."""
    try:
        locale.setlocale(locale.LC_ALL, "")
        is_usable = locale.nl_langinfo(locale.CODESET).upper() in ("UTF-8", "UTF8")
    except locale.Error:
        is_usable = False
    return {} if is_usable else {"LC_ALL": "C.UTF-8"}


def inventory(asked: argparse.Namespace, environment: Mapping[str, str]) -> List[str]:
    """The options of Ansible for the inventory; none if the environment names it. MisuseError if there is none."""
    if asked.inventory:
        return [word for name in asked.inventory for word in ("-i", name)]
    if asked.local:
        return ["-i", str(collection() / "playbooks" / "inventory" / "local.yml")]
    if environment.get("ANSIBLE_INVENTORY"):
        return []
    for name in FOUND:
        if os.path.exists(name):
            return ["-i", name]
    raise MisuseError(NO_INVENTORY)


def session_file(name: str) -> str:
    """The name of a session file, or MisuseError if it is missing or no YAML: Ansible repeats its own message for each format of
    an inventory.
    """
    if not os.path.isfile(name):
        raise MisuseError(f"{name}: there is no such session file")
    mark, why = None, "there are no variables in it"
    try:
        import yaml  # it comes with Ansible, which may have another Python

        text = Path(name).read_text(encoding="utf-8")
        # Ansible reads JSON and vaults by itself.
        if text.startswith(("{", "$ANSIBLE_VAULT")) or isinstance(yaml.compose(text), yaml.MappingNode):
            return name
    except ImportError:
        return name
    except (yaml.YAMLError, ValueError) as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error).splitlines()[0]
    raise MisuseError(NO_VARIABLES % (name, f", line {mark.line + 1}" if mark else "", why))


def artifacts(asked: argparse.Namespace) -> Path:
    """The directory with the files of sessions, as the option ``-e session_artifacts=…`` names it, or the default."""
    chosen = [text.partition("=")[2] for text in asked.variables if text.startswith("session_artifacts=")]
    return Path(chosen[-1] if chosen else "~/.cluster-compute").expanduser()


def sessions(asked: argparse.Namespace) -> List[str]:
    """The names of the sessions that have files on this machine."""
    return sorted(path.parent.name for path in artifacts(asked).glob("*/session.json"))


def named(asked: argparse.Namespace, words: Sequence[str]) -> Tuple[str, List[str]]:
    """The session and the other words: the first word is its name, unless there is only one session."""
    known = sessions(asked)
    if words and (words[0] in known or len(known) != 1 or not _belongs(asked, known[0], words[0])):
        return check_name(words[0]), list(words[1:])
    if len(known) == 1:
        return check_name(known[0]), list(words)
    which = f"one of {', '.join(known)}" if known else "no session has files on this machine"
    raise MisuseError(f"{asked.verb} needs the name of a session: {which}")


def session_of(asked: argparse.Namespace) -> str:
    """The session of a verb that has no other words."""
    return named(asked, [asked.name] if asked.name else [])[0]


def _belongs(asked: argparse.Namespace, name: str, word: str) -> bool:
    """Whether a word is a container or an app of a session."""
    found = document(asked, name) if asked.verb in ("logs", "open", "ssh") else {"hosts": []}
    return word in ([app["name"] for app in found["apps"]] if asked.verb == "open" else found["hosts"])


def document(asked: argparse.Namespace, name: str, *hosts: str) -> Dict[str, Any]:
    """What ``session.json`` of a session has, which must have these containers."""
    folder = artifacts(asked)
    missing = WAITS.format(name) if _waits(folder, name) else NO_FILES % (name, folder)
    return document_of(folder / name, missing, *hosts)


def _waits(folder: Path, name: str) -> bool:
    """Whether this machine keeps a request of that name, as for a session that waits."""
    for file in folder.glob(".requests/*"):
        try:
            if json.loads(file.read_text(encoding="utf-8"))["request"]["name"] == name:
                return True
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return False
