# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The private stores of release 1.0, in the homes of the users of a head: the store that all of them share adopts them.

Root reads what belongs to a user as that user, in a process of its own, so a link in a home leads root nowhere.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import grp
import json
import os
import pwd
import sys
import traceback
from functools import partial
from typing import Callable, Iterator, List, TextIO

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._head.kept_logs import keep_logs, kept_logs
from ansible_collections.cluster.compute.plugins.module_utils._head.row import COLUMNS
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import FORMER_DIR
from ansible_collections.cluster.compute.plugins.module_utils._head.store import FILE, Store

ADOPTED = FILE + ".adopted"


def adopt_former(folder: str, gid: int, check: bool) -> List[Json]:
    """Adopt the stores of the members of the group, or of this user alone without root. The result names each of them.

    A store that is adopted gets another name, so that an old request is never adopted a second time.
    """
    adopted = []
    for account in _accounts(gid):
        former = _former(account)
        if not _as(account, partial(_find, former)):
            continue
        taken = []
        if not check:
            taken = _taken(folder, account, former)
            _as(account, partial(_set_aside, former))
        adopted.append({"user": account.pw_name, "folder": former, "sessions": taken})
    return adopted


def _accounts(gid: int) -> Iterator[pwd.struct_passwd]:
    """The users of the group who may have a store of their own."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    members = set(grp.getgrgid(gid).gr_mem)
    for account in pwd.getpwall():
        if account.pw_uid != 0 and (account.pw_name in members or account.pw_gid == gid):
            yield account


def _former(account: pwd.struct_passwd) -> str:
    return os.path.join(account.pw_dir, FORMER_DIR[len("~/") :])


def _find(former: str, out: TextIO) -> None:
    if os.path.isfile(os.path.join(former, FILE)):
        out.write("true\n")


def _taken(folder: str, account: pwd.struct_passwd, former: str) -> List[str]:
    """Take every session of a user's store in one transaction; the names of those that are new here."""
    documents = [json.loads(line) for line in _as(account, partial(_export, former))]
    store = Store(folder)
    try:
        with store.transaction():
            rows = [store.take(document) for document in documents]
    finally:
        store.close()
    taken = [(row, document["logs"]) for row, document in zip(rows, documents) if row is not None]
    for row, logs in taken:
        if logs:
            keep_logs(folder, row.id, [{"logs": logs}])
    return [row.name for row, _logs in taken]


def _export(former: str, out: TextIO) -> None:
    store = Store(former, read_only=True)
    try:
        for document in _exported(store):
            logs = kept_logs(former, document["values"][0])
            out.write(json.dumps({**document, "logs": logs}) + "\n")
    finally:
        store.close()


def _exported(store: Store) -> Iterator[Json]:
    """Every session with its history and its launches, as ``Store.take`` reads it."""
    statement = "SELECT %s FROM session ORDER BY created, rowid" % ", ".join(COLUMNS)
    for values in store.query("session", statement):
        launches = store.query("launch", "SELECT id FROM launch WHERE session = ?", values[:1])
        yield {
            "values": list(values),
            "history": [list(note.values()) for note in store.history(values[0])],
            "launches": [launch for (launch,) in launches],
        }


def _set_aside(former: str, _out: TextIO) -> None:
    os.rename(os.path.join(former, FILE), os.path.join(former, ADOPTED))


def _as(account: pwd.struct_passwd, work: Callable[[TextIO], None]) -> List[str]:
    """The lines that ``work`` writes, in a process that has the rights of the user and no others."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_child(account, work, writer))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as answers:
        lines = answers.read().splitlines()
    _pid, status = os.waitpid(child, 0)
    if status:
        raise StateError(
            "The session store of %s in %s cannot be read: %s; move it away, or repair it."
            % (account.pw_name, _former(account), (lines or ["the process ended"])[-1]), account.pw_name)  # fmt: skip
    return lines


def _child(account: pwd.struct_passwd, work: Callable[[TextIO], None], writer: int) -> int:
    with os.fdopen(writer, "w", encoding="utf-8") as out:
        try:
            if os.geteuid() == 0:
                os.initgroups(account.pw_name, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            os.chdir("/")
            work(out)
        except ComputeError as error:
            out.write("\n" + error.message.rstrip("."))
            return 1
        except Exception:
            out.write("\n" + traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip())
            return 1
    return 0
