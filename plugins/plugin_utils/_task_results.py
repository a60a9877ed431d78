# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a callback reads of a task and of its result, with every supported release of ansible-core."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict

from ._progress import TaskFacts


def task_facts(task: Any) -> TaskFacts:
    """What the output of a phase needs to know of a task."""
    role = task._role.get_name() if getattr(task, "_role", None) else ""
    step = str(task.args.get("call") or "") if isinstance(task.args, dict) else ""
    return TaskFacts(str(task.name or task.get_name()).strip(), str(task.action), str(role), step)


def document_of(result: Any) -> Dict[str, Any]:
    """The result's document: ansible-core 2.19 renames the attribute."""
    found: Dict[str, Any] = getattr(result, "result", None) or getattr(result, "_result", {})
    return found


def task_of(result: Any) -> Any:
    """Its task, whatever the release of ansible-core calls the attribute."""
    return getattr(result, "task", None) or result._task


def host_of(result: Any) -> str:
    """The name of its host."""
    return str((getattr(result, "host", None) or result._host).get_name())


def message_of(facts: Dict[str, Any]) -> str:
    """The sentence of a failure; of a loop, that of the first item that failed."""
    for item in facts.get("results") or []:
        if isinstance(item, dict) and item.get("failed"):
            return message_of(item)
    return str(facts.get("msg") or facts.get("stderr") or "failed without a message").strip()
