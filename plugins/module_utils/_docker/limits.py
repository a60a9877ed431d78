# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits of a session in its containers: PID 1 keeps them (roles/image/files/limits.sh), and reads them again and again."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from .._core.constants import CONFIG_FOLDER
from .._core.documents import Json
from .._core.model import Session
from .._core.parallel import run_all
from .client import Engine
from .data_folders import check_mounts_answer
from .removal import ContainerChanges
from .reports import engine_name

FILE = "limits"


def limits_text(session: Session) -> str:
    r"""The file that PID 1 reads; empty without a limit.

    >>> limits_text(Session("", "", "", "", "", "", 1, "", "", lifetime=60, began=1000.5, idle_timeout=20))
    'lifetime 60 1000\nidle 20\\n'
    """
    lifetime = "lifetime %d %d\n" % (session.lifetime, session.began) if session.lifetime else ""
    return lifetime + ("idle %d\n" % session.idle_timeout if session.idle_timeout else "")


def apply_limits(
    engine: Engine,
    session: Session,
    listed: Sequence[Json],
    parallelism: int,
    outcome: ContainerChanges,
    *,
    check: bool,
) -> None:
    """Write the limits into those of the containers that run and have others."""
    check_mounts_answer(listed, engine.agent)
    wanted = limits_text(session).encode()

    def differs(container: Json) -> bool:
        return engine.read_file(container["Id"], f"{CONFIG_FOLDER}/{FILE}", engine_name(container)) != wanted

    running = [container for container in listed if container["State"] == "running"]
    changed = [one for one, is_other in zip(running, run_all(differs, running, parallelism)) if is_other]
    for container in changed:
        outcome.act(engine_name(container), "limited", "running")

    def write(container: Json) -> None:
        engine.put_file(container["Id"], CONFIG_FOLDER, FILE, wanted, engine_name(container))

    if not check:
        run_all(write, changed, parallelism, keep_going=True)
