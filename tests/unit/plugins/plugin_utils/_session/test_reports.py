# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of an agent as the conductor takes it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from conducted import conducted, options_of

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import answered, collect_reports


@pytest.mark.parametrize("name", ["nöde1", "-n1", "n1\u2028", "gpu 1", "n" * 256])
def test_a_host_whose_name_no_report_can_have_is_an_agent_that_gets_nothing(name: str) -> None:
    found = answered({"name": name}, {"agent": {"name": name, "reachable": True}}).agent
    assert (found.name, found.reachable, found.may_return) == (name, False, False)
    assert found.reason == (
        "Its name in the inventory has other characters than letters, digits, '.', '_', '-', ':' and '@', or too many; "
        "give it another name, and set ansible_host to its address."
    )


@pytest.mark.parametrize(
    ("keyword", "variable", "is_here"),
    [
        ("ssh", "local", True),
        ("ssh", "ansible.builtin.local", True),
        ("ssh", None, False),
        ("local", None, True),
        ("local", "ssh", False),
    ],
)
def test_an_agent_on_this_machine_publishes_on_its_loopback_address(
    keyword: str, variable: str | None, is_here: bool
) -> None:
    """A task, its play or the option -c can name the connection, and a variable of the host replaces it."""
    inventory = {"a": {"ansible_connection": variable}}
    play = conducted({"report.collect": {"agent": {"name": "a", "reachable": True}}}, "a", inventory=inventory)
    play.action._task.connection = keyword
    collect_reports(play)
    [asked] = options_of(play, "report.collect")
    assert (asked["options"]["publish"] == "127.0.0.1", play.address_of("a") == "127.0.0.1") == (is_here, is_here)


NONE, WAITS, LIMITS = ({"sessions": count, "policy": policy} for count, policy in ((0, False), (2, False), (0, True)))


@pytest.mark.parametrize(
    ("first", "second", "has"),
    [
        (NONE, WAITS, r"sessions that wait or run \(2\)"),
        (NONE, LIMITS, "a policy"),
        (WAITS, {**WAITS, "policy": True}, "a policy"),
        (NONE, {**WAITS, "policy": True}, r"sessions that wait or run \(2\) and a policy"),
        (NONE, NONE, ""),
        (WAITS, WAITS, ""),
        (LIMITS, LIMITS, ""),
        # Nothing is known of the head.
        (None, WAITS, ""),
    ],
)
def test_a_head_without_the_store_that_another_agent_has_is_refused(first: Json | None, second: Json, has: str) -> None:
    """A host above the others has become the first agent, which is the head without a group of that name."""

    def report(host: str, args: Json) -> Json:
        assert args["store"] == "/var/lib/cluster-compute"
        found = {"a": first, "b": second}[host]
        return {"agent": {"name": host, "reachable": True}, "store": found} if found else {"failed": True, "msg": "no"}

    play = conducted({"report.collect": report}, "a", "b")
    message = rf"^b has {has} in its session store, and the head of this command, a, has none: name b in group head"
    with pytest.raises(StateError, match=message) if has else nullcontext():
        collect_reports(play)


def test_an_agent_that_says_something_else_of_its_store_is_refused() -> None:
    report = {"agent": {"name": "a", "reachable": True}, "store": {"sessions": "many", "policy": False}}
    with pytest.raises(ComputeError, match=r"^The answer of a is refused: it has 'many' in sessions"):
        collect_reports(conducted({"report.collect": report}, "a"))
