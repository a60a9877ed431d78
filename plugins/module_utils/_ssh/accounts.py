# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image's own accounts, with ``root``, the session's user and ``sshd`` made certain."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Set

from ansible_collections.cluster.compute.plugins.module_utils._core.model import User

NOLOGIN = "/usr/sbin/nologin"
NOBODY = 65534


def merged_passwd(text: str, user: User, shell: str) -> str:
    """The user's line goes right after root's: of several names with its uid, ``id`` answers the first.

    >>> print(merged_passwd("bob:x:1000:1000::/home/bob:/bin/sh", User(), "/bin/sh"), end="")
    root:x:0:0:root:/root:/bin/sh
    work:x:1000:1000::/home/work:/bin/sh
    bob:x:1000:1000::/home/bob:/bin/sh
    sshd:x:999:65534::/run/sshd:/usr/sbin/nologin
    """
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:0:root:/root:" + shell]
    own = "%s:x:%d:%d::%s:%s" % (user.name, user.uid, user.gid, user.home, shell)
    others = _except(lines, {"root", user.name})
    daemon = [] if _named(lines, "sshd") else [_daemon(lines, user)]
    return _text(root[:1] + [own] + others + daemon)


def merged_group(text: str, user: User) -> str:
    """The same for groups."""
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:"]
    return _text(root[:1] + ["%s:x:%d:" % (user.name, user.gid)] + _except(lines, {"root", user.name}))


def merged_shadow(text: str, user: User) -> str:
    """The image's shadow file without a lock on the user: sshd takes no key for a password that begins with ``!``.

    A user without a line there is not locked, so that an image's file usually stays as it is.
    """
    lines = text.split("\n")
    if not _named(lines, user.name):
        return text
    return _text(_except(lines, {user.name}) + ["%s:*:::::::" % user.name])


def _named(lines: List[str], name: str) -> List[str]:
    return [line for line in lines if line.startswith(name + ":")]


def _except(lines: List[str], names: Set[str]) -> List[str]:
    return [line for line in lines if line.strip() and line.split(":", 1)[0] not in names]


def _daemon(lines: List[str], user: User) -> str:
    """The account that sshd drops its privileges to, under a uid that nobody has."""
    taken = {line.split(":")[2] for line in lines if line.count(":") >= 3} | {str(user.uid)}
    uid = next(uid for uid in range(999, 0, -1) if str(uid) not in taken)
    return "sshd:x:%d:%d::/run/sshd:%s" % (uid, NOBODY, NOLOGIN)


def _text(lines: List[str]) -> str:
    return "\n".join(lines) + "\n"
