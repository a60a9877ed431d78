# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The batch command of a session and its end: fields that a request and its plan have in common, declared once."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass

from .declaration import declared, declared_choice, declared_flag
from .value_rules import check_text, within

_DAYS = 86400


@dataclass(frozen=True)
class BatchSettings:
    """What ``main1`` runs as a batch, and what follows its end or its failure."""

    command: str = declared(
        "str",
        "",
        "Batch command, run once on C(main1) when all containers are ready. Its exit code is the result of the session.",
        check_text,
    )
    command_timeout: int = declared(
        "int",
        0,
        "Seconds after which the batch command is terminated, from 0, which means never, to 2592000, which is 30 days. "
        "Requires O(session_command).",
        within(0, 30 * _DAYS),
    )
    terminate_when_done: bool = declared_flag(
        "Terminate the session when its batch command has ended. Requires O(session_command)."
    )
    on_failure: str = declared_choice(
        ("keep", "terminate", "restart"),
        "What happens to the session when its command fails or a container dies. With V(restart), PID 1 of C(main1) starts the "
        "command again, and the next run of C(schedule.yml) restores the containers.",
    )
    restarts: int = declared(
        "int",
        3,
        "Number of times that a failed command is started again with O(session_on_failure=restart), from 0 to 1000.",
        within(0, 1000),
    )
