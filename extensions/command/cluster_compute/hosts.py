# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that a user begins with: an inventory of hosts, and a first session."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Sequence

from . import places
from .lines import lines_of
from .run import play, play_all, report, shown
from .words import MisuseError, check_name

HOSTS, SESSION, NEXT = Path("hosts.yml"), Path("session.yml"), ("hosts provision", "up session.yml")
# A user, a name or an address, which may be of IPv6 and in brackets, and a port.
ADDRESS = re.compile(
    r"(?ai)(?:(\w[\w.-]*)@)?(\[)?(\w[\w.-]*|[\da-f:]*:[\da-f:]*:[\da-f:.]*(?:%[\w.-]+)?)(?(2)\])(?::(\d{1,5}))?"
)
EMPTY = "# Hosts that run sessions: docs/agents.md describes their variables.\nagents:\n  hosts:\n"
# The second part is the indentation of the first host.
GROUP = re.compile(r"^agents:\n(?: *#.*\n)*( +)hosts:\n(?=(?: *(?:#.*)?\n)*(?:(\1 +)\S)?)", re.MULTILINE)
HOST, HEAD = re.compile(r"""(?: *(?:#.*)?\n)* +["']?(\w[\w.:-]*?)["']?:(?=\s)"""), re.compile(r"^head:", re.MULTILINE)


def hosts(asked: argparse.Namespace) -> int:
    """Show the hosts of the inventory, make them agents, or add some first."""
    return {"provision": play_all, "ls": _list, "add": _add}[asked.action](asked)


def _list(asked: argparse.Namespace) -> int:
    inventory = places.inventory(asked, os.environ)
    words = [places.program("ansible-inventory"), *inventory, "--list" if asked.json else "--graph"]
    own = places.configuration(os.environ)
    if asked.show:
        print(shown(words, own))
        return 0
    return 1 if subprocess.run(words, env={**os.environ, **own}, check=False).returncode else 0


def _file(asked: argparse.Namespace) -> Path:
    """The inventory to write, which is the one that later commands read."""
    [file, *_] = map(Path, [*asked.inventory[-1:], *filter(os.path.exists, places.FOUND), HOSTS])
    if not asked.inventory and os.path.abspath(os.environ.get("ANSIBLE_INVENTORY") or file) != os.path.abspath(file):
        raise MisuseError(f"later commands read the inventory of ANSIBLE_INVENTORY, not {file}: unset it, or use -i")
    return file


def _add(asked: argparse.Namespace) -> int:
    file = _file(asked)
    entries, asked.inventory = entries_of(asked.addresses, asked.host or ""), [str(file)]
    if asked.show:
        return play_all(asked)
    former = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    _write(file, with_hosts(former or EMPTY, entries, head=bool(asked.head)))
    code = 0 if asked.no_provision else play(lines_of(asked)[0], asked, quiet=asked.json)[0]
    report(asked, {"file": str(file), "hosts": list(entries), "provisioned": not (asked.no_provision or code)}, [])
    return code


def entries_of(addresses: Sequence[str], name: str = "") -> Dict[str, str]:
    """A line of YAML for each host. Its login may use the engine after provisioning."""
    entries = {}
    for address in addresses:
        found = ADDRESS.fullmatch(address)
        if not found or not 0 < int(found[4] or 22) < 65536:
            raise MisuseError(f"{address!r} is not a host's [USER@]ADDRESS[:PORT]")
        user, _bracket, host, port = found.groups()
        login = {"ansible_user": user, **({"agent_users": [user]} if user != "root" else {})} if user else {}
        place = {"ansible_host": host, **({"ansible_port": int(port)} if port else {})}
        # The zone of a link-local address is not part of a name.
        known = name or host.partition("%")[0]
        entries[known] = f"{json.dumps(known)}: {json.dumps({**place, **login})}\n"
    if len(entries) < max(1, len(addresses)):
        raise MisuseError("each host needs an address and a name of its own; hosts add --name names a single host")
    return entries


def with_hosts(text: str, entries: Dict[str, str], *, head: bool = False) -> str:
    """An inventory with further agents below the others. All other lines, comments too, stay as they are.

    The head keeps the session store and the policy: an inventory without a group C(head) gets one, so that its head stays the same.
    """
    group = GROUP.search(text)
    indentation = (group[2] or f"{group[1]}  ") if group else "    "
    lines = "".join(indentation + entry for entry in entries.values())
    if known := [name for name in entries if re.search(rf'^ +"?{re.escape(name)}"?:', text, re.MULTILINE)]:
        raise MisuseError(f"{', '.join(known)}: the inventory has it already; hosts provision makes it an agent")
    if not group or (head and HEAD.search(text)):
        raise MisuseError(f"the inventory has another form, or a head already: add the hosts by hand:\n{lines}")
    first = HOST.match(text, group.end()) if group[2] else None
    end = _end_of_hosts(text, group.end(), indentation) if group[2] else group.end()
    text = "".join(part if part.endswith("\n") or not part else f"{part}\n" for part in (text[:end], lines, text[end:]))
    if HEAD.search(text) or (group[2] and not (head or first)):
        return text
    return f"{text}head:\n  hosts:\n    {json.dumps(first[1] if first and not head else next(iter(entries)))}:\n"


def _end_of_hosts(text: str, start: int, indentation: str) -> int:
    """Where the last line ends that belongs to a host."""
    end = place = start
    for line in text[start:].splitlines(keepends=True):
        place += len(line)
        if line.startswith(indentation) and line.strip():
            end = place
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return end


def init(asked: argparse.Namespace) -> int:
    """Write an inventory and the file of a first session, which must not exist."""
    files = (_file(asked), SESSION)
    if existing := [str(file) for file in files if file.exists()]:
        raise MisuseError(f"{', '.join(existing)}: init overwrites no file")
    if not (addresses := asked.yes or _answer(asked, "Hosts, as [USER@]ADDRESS with spaces", "").split()):
        raise MisuseError("init needs a host; for this machine alone, use --local with each command")
    entries = entries_of(addresses)
    values = {
        "session_name": check_name(_answer(asked, "Name of the first session", "train")),
        "session_cluster_size": (size := _answer(asked, "Containers", str(len(entries)))),
        # The fewest for each host that make room for all.
        "session_per_agent": f"{-(-int(size) // len(entries))}" if len(entries) > 1 and size.isdecimal() else "",
        "session_cpus": _answer(asked, "CPUs of each container", "1"),
        "session_memory": _answer(asked, "Memory of each container", "1g"),
        "session_image": _answer(asked, "Image; empty for the small reference image", ""),
    }
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in values.items() if value]
    _write(files[0], with_hosts(EMPTY, entries), os.O_EXCL)
    _write(SESSION, "# docs/variables.md describes all variables of a session.\n" + "".join(lines), os.O_EXCL)
    steps = [f"  cluster-compute{''.join(f' -i {file}' for file in asked.inventory)} {verb}" for verb in NEXT]
    report(asked, {"files": [*map(str, files)]}, [f"{files[0]} and {SESSION} are written. Next:", *steps])
    return 0


def _answer(asked: argparse.Namespace, question: str, default: str) -> str:
    if asked.yes:
        return default
    print(f"{question}{f' [{default}]' if default else ''}: ", end="", file=sys.stderr, flush=True)
    try:
        return input().strip() or default
    except EOFError:
        raise MisuseError("init asks on a terminal; init --yes HOST … asks nothing") from None


def _write(file: Path, text: str, how: int = 0) -> None:
    """Write a file. A former one keeps its owner, its mode and its links, and its text until the disk has room for the new one.

    Root follows no link, whose owner could lead root anywhere.
    """
    content = text.encode(errors="surrogateescape")
    flags = os.O_WRONLY | os.O_CREAT | how | (0 if os.geteuid() else os.O_NOFOLLOW)
    with open(os.open(file, flags, 0o644), "wb") as written:
        former = os.fstat(written.fileno()).st_size
        try:
            os.posix_fallocate(written.fileno(), 0, len(content))
        except OSError:
            written.truncate(former)  # some file systems have written zeros until then
            raise
        written.write(content)
        written.truncate()
