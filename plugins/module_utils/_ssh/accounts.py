# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Account files for a container: the image's accounts, completed with ``root``, the session's user and ``sshd``."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Sequence, Set

from .._core.errors import ComputeError
from .._core.model import User

NOLOGIN = "/usr/sbin/nologin"
NOGROUP_GID = 65534


def merged_passwd(text: str, user: User, shell: str) -> str:
    """Insert the user after root: if several names share a uid, ``id`` shows the first."""
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:0:root:/root:" + shell]
    own = "%s:x:%d:%d::%s:%s" % (user.name, user.uid, user.gid, user.home, shell)
    others = _except(lines, {"root", user.name})
    daemon = [] if _named(lines, "sshd") else [_daemon(lines, user)]
    return _text(root[:1] + [own] + others + daemon)


def merged_group(text: str, user: User, device_groups: Sequence[int] = ()) -> str:
    """Insert the user's group after the group of root, and make the user a member of the groups that may use devices."""
    lines = text.split("\n")
    root = _named(lines, "root") or ["root:x:0:"]
    others = _except(lines, {"root", user.name})
    for gid in device_groups:
        same = next((place for place, line in enumerate(others) if line.split(":")[2:3] == [str(gid)]), None)
        if same is None:
            others.append("device%d:x:%d:%s" % (gid, gid, user.name))
            continue
        fields = (others[same].split(":") + [""])[:4]
        members = [name for name in fields[3].split(",") if name not in ("", user.name)]
        others[same] = ":".join([*fields[:3], ",".join([*members, user.name])])
    return _text(root[:1] + ["%s:x:%d:" % (user.name, user.gid)] + others)


def merged_shadow(text: str, user: User) -> str:
    """Unlock the user: sshd accepts no key for an account whose password begins with ``!``.

    A user without a line is not locked, so the file of most images stays unchanged.
    """
    lines = text.split("\n")
    if not _named(lines, user.name):
        return text
    return _text(_except(lines, {user.name}) + [f"{user.name}:*:::::::"])


def _named(lines: List[str], name: str) -> List[str]:
    return [line for line in lines if line.startswith(name + ":")]


def _except(lines: List[str], names: Set[str]) -> List[str]:
    return [line for line in lines if line.strip() and line.split(":", 1)[0] not in names]


def _daemon(lines: List[str], user: User) -> str:
    """The account that sshd drops its privileges to, under an unused uid: one of the system's, if the image leaves one."""
    taken = {line.split(":")[2] for line in lines if line.count(":") >= 3} | {str(user.uid)}
    uid = next((uid for uid in (*range(999, 0, -1), *range(1001, NOGROUP_GID)) if str(uid) not in taken), 0)
    if not uid:
        raise ComputeError("The image uses all user IDs below %d: sshd needs an unused one." % NOGROUP_GID)
    return "sshd:x:%d:%d::/run/sshd:%s" % (uid, NOGROUP_GID, NOLOGIN)


def _text(lines: List[str]) -> str:
    return "\n".join(lines) + "\n"
