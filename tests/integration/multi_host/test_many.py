# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many launches at once, and many launches in sequence."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from agents_lab import NAMES, Agents, Lab
from controller import ENDED, LABEL

ONE = {"session_cpus": 1, "session_memory": "64m"}
# All CPUs of a host.
WHOLE = {**ONE, "session_cpus": 2}
ROUNDS = int(os.environ.get("ROUNDS", "1"))
# What an engine and its host keep of a session: rules, interfaces, networks, volumes, network namespaces in use (the
# engine removes the files of ended namespaces once a minute), control groups.
TRACES = (
    "iptables-save | grep -c '^-A'; ls /sys/class/net | wc -l; docker network ls -q | wc -l; docker volume ls -q | wc -l;"
    "docker ps -aq | wc -l; grep -c docker/netns/ /proc/self/mounts;"
    'find "/sys/fs/cgroup/memory$(cut -d \\" -f 4 /etc/docker/daemon.json)" -type d 2>/dev/null | wc -l'
)


# Its events say how much an engine holds at each time; to ask it each second would take more processor time than a launch.
WATCH = f"""
docker events --since {{since}} --filter type=container --filter event=create --filter event=destroy --filter label={LABEL} --format \
    '{{{{{{{{.Action}}}}}}}} {{{{{{{{index .Actor.Attributes "cluster.compute.container.resources"}}}}}}}}' &
until [ -e /tmp/watched ]; do sleep 1; done
rm /tmp/watched
kill $!
"""


@contextmanager
def watched(lab: Lab) -> Iterator[list[int]]:
    """The highest amount of CPU that any engine has held at any time, in thousandths of a CPU; known at the end."""
    most = [0]
    watch = WATCH.format(since=time.time())
    with ThreadPoolExecutor(len(NAMES)) as threads:
        watchers = [threads.submit(lab.shell, agent, watch, 600) for agent in NAMES]
        try:
            yield most
        finally:
            for agent in NAMES:
                lab.shell(agent, "touch /tmp/watched").check()
        most[0] = max(highest(watcher.result().check().text) for watcher in watchers)


def highest(events: str) -> int:
    """The highest amount of CPU of the containers that exist at the same time."""
    changes = [line.partition(" ") for line in events.splitlines()]
    amounts = [json.loads(text)["millicpus"] * (1 if action == "create" else -1) for action, _space, text in changes]
    held = list(itertools.accumulate(amounts))
    assert held, "a host had no container"
    assert min(held) >= 0, events
    return max(held)


def test_five_launches_at_once_fill_the_room_for_three(agents: Agents, lab: Lab) -> None:
    names = [f"crowd-{number}" for number in range(5)]
    with watched(lab) as most, ThreadPoolExecutor(len(names)) as threads:
        done = list(threads.map(lambda name: agents.launch(name, **WHOLE), names))
    assert [each.code for each in done] == [0] * 5, "\n".join(each.text for each in done if each.code)
    assert sorted(state for _name, state in agents.states()) == ["PENDING"] * 2 + ["RUNNING"] * 3
    assert most[0] == 2000

    # What waits goes first: the end of a session launches what waits.
    agents.terminate(next(name for name, state in agents.states() if state == "RUNNING")).check()
    live = sorted(state for _name, state in agents.states() if state not in ENDED)
    assert live == ["PENDING"] + ["RUNNING"] * 3
    waiting = next(name for name, state in agents.states() if state == "PENDING")
    agents.terminate(waiting).check()
    agents.play("terminate", session_name="crowd-*", session_many=True).check()
    assert agents.held() == {name: [] for name in NAMES}


def traces(lab: Lab, agents: Agents) -> list[int]:
    """All counts of all agents, and the number of files that the controller keeps."""
    counts = [int(count) for agent in NAMES for count in lab.shell(agent, TRACES).text.split()]
    return [*counts, len(agents.kept())]


def grown(before: list[int], after: list[int]) -> list[int]:
    """The indexes of counts that are higher than before. Lower counts are fine: an engine removes some things late."""
    assert len(after) == len(before)
    return [index for index, count in enumerate(after) if count > before[index]]


def test_repeated_launches_leave_no_trace(agents: Agents, lab: Lab) -> None:
    shape = {"session_cluster_size": 3, "session_cluster_mode": "multi-node", **ONE}

    def once() -> None:
        agents.launch("again", **shape).check()
        agents.terminate("again").check()

    once()
    before = traces(lab, agents)
    for _round in range(ROUNDS):
        once()
    deadline = time.monotonic() + 150
    while (more := grown(before, traces(lab, agents))) and time.monotonic() < deadline:
        time.sleep(10)  # an engine removes some of its own things once a minute
    assert not more
    assert {state for name, state in agents.states() if name == "again"} == {"TERMINATED"}
