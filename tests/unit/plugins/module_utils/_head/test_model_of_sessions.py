# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions under random launches, sizes, losses, kills, ends, lost controllers and policies: the real store and planner, and simulated
engines.

Nothing is booked twice, a launch or a growth makes all of its containers or none and keeps the policy of its moment, and every session
reaches an end that leaves nothing.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from samples import agent, context, observed, request

from ansible_collections.cluster.compute.plugins.module_utils._head.losses import losses, note_agents, unfence
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import removable
from ansible_collections.cluster.compute.plugins.module_utils._head.relocation import to_clean
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import decide, launch
from ansible_collections.cluster.compute.plugins.module_utils._head.snapshot import Context, Snapshot
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Decision, Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Container, Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, EngineNetwork
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Limits, SitePolicy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

NAMES = st.sampled_from(["alpha", "beta1"])
HOSTS = ("a", "b", "c")
CPUS, LEASE, PATIENCE = 4, 600.0, 60
BARE = {name: agent(name, cpus=CPUS, node_id=f"node-{name}") for name in HOSTS}
ENDS = st.sampled_from(["done", "done", "fails", "killed"])


def shape_of(name: str, size: int) -> dict[str, object]:
    """One of the sessions has roles, which grow and shrink in turns."""
    if name == "alpha":
        return {"cluster_size": size}
    ps = max(1, (size - 1) // 2)
    return {"roles": [{"name": "ps", "size": ps}, {"name": "worker", "size": max(1, size - 1 - ps)}]}


def decided_from(snapshot: Snapshot, wanted: Request) -> object:
    """A decision with what is to be written, or why there is none. Its IDs are the same each time."""
    ids = (uuid.UUID(int=number) for number in count(1))
    with patch("uuid.uuid4", lambda: next(ids)):
        try:
            return decide(snapshot, wanted)
        except ComputeError as error:
            return error.message


class Sessions(RuleBasedStateMachine):
    """``engines`` has what runs on each host, by the ID of the session and of the container."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.store = Store(f"{self.directory}/state")
        self.engines: dict[str, dict[tuple[str, str], tuple[Container, Plan, str]]] = {name: {} for name in HOSTS}
        self.lost: set[str] = set()
        self.site = SitePolicy(default=Limits(cpus=6000))
        self.now = 1000.0

    # What happens

    @rule(name=NAMES, size=st.integers(1, 7), on_lost=st.sampled_from(["relocate", "relocate", "keep"]), end=ENDS)
    def launched(self, name: str, size: int, on_lost: str, end: str) -> None:
        """A launch, or a repair of a session that exists."""
        row = self.store.find(name, "alice")
        if row is not None and row.request is not None:
            size, on_lost = row.request.size, row.request.on_lost
        self.decided(name, size, on_lost, end)

    @rule(name=NAMES, by=st.sampled_from([-2, -1, 1, 2, 3]), end=ENDS)
    def scaled(self, name: str, by: int, end: str) -> None:
        """Another size for a session, which is launched before if it does not run."""
        if self.store.find(name, "alice") is None:
            self.decided(name, 2, "relocate", "done")
        row = self.store.find(name, "alice")
        if row is not None and row.state == states.RUNNING and row.request is not None:
            self.decided(name, max(1, row.request.size + by), row.request.on_lost, end)

    @rule(name=NAMES, reaches=st.booleans())
    def ended(self, name: str, reaches: bool) -> None:
        """An end. Without ``reaches``, its controller is lost before it has removed anything."""
        row = self.store.find(name, "alice")
        if row is None or (row.lease >= self.now and row.state in (states.PREPARING, states.TERMINATING)):
            return
        make_change(self.store, "terminating", self.change(row.id))
        row = self.store.get(row.id)
        if row is None or row.state in states.ENDED or not reaches:
            return
        self.removed([row.id])
        reached = tuple(name for name in HOSTS if name not in self.lost)
        make_change(self.store, "terminated", replace(self.change(row.id), reached=reached))

    @rule(host=st.sampled_from(HOSTS))
    def lost_or_back(self, host: str) -> None:
        """A host without an answer, or its return: its containers have been stopped, and none starts by itself."""
        if host in self.lost:
            self.lost.remove(host)
        elif len(self.lost) < len(HOSTS) - 1:
            self.lost.add(host)
            self.engines[host] = {key: (one, plan, "exited") for key, (one, plan, _state) in self.engines[host].items()}

    @rule(data=st.data())
    @precondition(lambda self: any(self.engines.values()))
    def killed(self, data: st.DataObject) -> None:
        host = data.draw(st.sampled_from([name for name in HOSTS if self.engines[name]]))
        key = data.draw(st.sampled_from(sorted(self.engines[host])))
        one, plan, _state = self.engines[host][key]
        self.engines[host][key] = (one, plan, "exited")

    @rule(millicpus=st.sampled_from([None, 3000, 6000]))
    def permitted(self, millicpus: int | None) -> None:
        """Another policy. What runs stays, even if it has more."""
        self.site = SitePolicy(default=Limits(cpus=millicpus))

    @rule(seconds=st.sampled_from([1.0, 100.0, LEASE + 1]))
    def later(self, seconds: float) -> None:
        self.now += seconds

    @rule(end=ENDS)
    def passed(self, end: str) -> None:
        """Two passes of the timer: hosts that are back are cleaned, and sessions of lost hosts move."""
        reports = self.reports()
        note_agents(self.store, reports, self.now)
        self.now += PATIENCE
        note_agents(self.store, reports, self.now)
        for host, entry in to_clean(self.store.fences(), self.store.swarms(), reports).items():
            self.removed(entry.sessions, host)
            unfence(self.store, host, entry.sessions)
        for loss in losses(self.store, self.reports(), "alice", self.now):
            row = self.store.get(loss.id)
            if loss.action == "relocate" and row is not None and row.request is not None:
                self.decided(row.name, row.request.size, "relocate", end, relocates=True)
        self.removed(removable(self.store, self.reports()))

    # What a controller does

    def decided(self, name: str, size: int, on_lost: str, end: str, *, relocates: bool = False) -> None:
        shape = shape_of(name, size)
        wanted = request(name=name, cluster_mode="multi-node", cpus=1, on_lost=on_lost, lost_after=PATIENCE, **shape)
        self.now += 1
        before = self.booked()
        given = context(*self.reports(), now=self.now, lease=LEASE, relocates=relocates, site=self.site)
        self.decides_without_a_change(given, wanted)
        try:
            decision = launch(self.store, wanted, given)
        except ComputeError:
            return
        most, booked = self.site.default.cpus, self.booked()
        assert most is None or booked <= max(most, before), f"{booked} of {most} permitted are booked"
        self.removed(decision.remove)
        if decision.outcome in ("placed", "repair") and decision.plan is not None:
            self.carried_out(decision, decision.plan, end)

    def decides_without_a_change(self, given: Context, wanted: Request) -> None:
        """Two decisions from one snapshot are the same, and write nothing."""
        snapshot, before = self.store.snapshot(given, wanted), self.everything()
        first, second = (decided_from(snapshot, wanted) for _time in range(2))
        assert first == second
        assert self.everything() == before

    def everything(self) -> list[object]:
        tables = [name for (name,) in self.store.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [self.store.query(f"SELECT * FROM {table}") for table in tables]

    def booked(self) -> int:
        """The CPUs that the owner has, in thousandths: one for each container."""
        return 1000 * sum(plan.session.size for plan in self.store.held_plans())

    def carried_out(self, decision: Decision, plan: Plan, end: str) -> None:
        session, known = plan.session.id, {one.id for one in plan.containers}
        for host in (name for _hostname, name in decision.removed if name not in self.lost):
            for key in [key for key in self.engines[host] if key[0] == session and key[1] not in known]:
                del self.engines[host][key]
        made = []
        for one in plan.containers[: len(plan.containers) // 2 if end == "killed" else None]:
            if self.state(one, session) != "running":
                assert one.agent not in self.lost, f"{one.hostname} is made on {one.agent}, which does not answer"
                if self.state(one, session) == "":
                    made.append(one)
                self.engines[one.agent][session, one.id] = (one, plan, "running")
        if end == "fails":
            for one in made:
                del self.engines[one.agent][session, one.id]
        if end != "killed":
            how = "running" if end == "done" else "failed"
            make_change(self.store, how, replace(self.change(session, "a test"), launch=plan.session.launch))
        if end == "fails" and 0 < decision.former_size < plan.session.size:
            row = self.store.get(session)
            assert row is not None
            assert row.plan is not None
            assert row.plan.session.size == decision.former_size, "a growth that fails leaves the former size"

    def removed(self, sessions: object, *hosts: str) -> None:
        wanted = list(sessions) if isinstance(sessions, (list, tuple)) else []
        for host in hosts or HOSTS:
            if host not in self.lost:
                self.engines[host] = {key: one for key, one in self.engines[host].items() if key[0] not in wanted}

    def change(self, session: str, reason: str = "") -> Change:
        return Change(
            session, "", "alice", reason, "", self.now, LEASE, agents=self.reports(), holder=Holder(user="alice")
        )

    def state(self, container: Container, session: str) -> str:
        found = self.engines[container.agent].get((session, container.id))
        return found[2] if found else ""

    def reports(self) -> tuple[AgentReport, ...]:
        return tuple(self.report(name) for name in HOSTS)

    def report(self, name: str) -> AgentReport:
        if name in self.lost:
            return agent(name, 0, 0, reachable=False, swarm="")
        found = self.engines[name]
        subnets = {session: plan.network.subnet for (session, _id), (_one, plan, _state) in found.items()}
        return replace(
            BARE[name],
            containers=tuple(observed(one, session, state) for (session, _id), (one, _plan, state) in found.items()),
            ports=tuple(
                port.host_port for one, _plan, state in found.values() for port in one.ports if state == "running"
            ),
            networks=tuple(EngineNetwork(subnets=(subnet,), session=session) for session, subnet in subnets.items()),
        )

    # What always holds

    @invariant()
    def nothing_is_booked_twice(self) -> None:
        plans = self.store.held_plans()
        used = Counter(one.agent for plan in plans for one in plan.containers)
        assert all(count <= CPUS for count in used.values()), used
        addresses = Counter(one.address for plan in plans for one in plan.containers)
        assert max(addresses.values(), default=1) == 1, addresses
        ports = Counter((plan.main.agent, port.host_port) for plan in plans for port in plan.main.ports)
        assert max(ports.values(), default=1) == 1, ports

    @invariant()
    def no_two_containers_with_one_address_run(self) -> None:
        answering = (name for name in HOSTS if name not in self.lost)
        found = Counter(
            one.address for name in answering for one, _plan, state in self.engines[name].values() if state == "running"
        )
        assert max(found.values(), default=1) == 1, found

    @invariant()
    def what_runs_is_whole_or_says_what_it_lacks(self) -> None:
        for row in self.store.live({states.RUNNING}):
            if row.plan is not None and row.holder is None:
                agents = [one.agent for one in row.plan.containers]
                assert len(agents) == row.plan.session.size
                assert row.request is None or row.request.size == row.plan.session.size

    def teardown(self) -> None:
        """All hosts are back, everything is ended, and nothing is left."""
        try:
            self.lost.clear()
            self.now += 2 * LEASE
            self.passed("done")
            for row in self.store.live(states.LIVE):
                self.now += 2 * LEASE
                self.ended(row.name, reaches=True)
            self.passed("done")
            assert [row.state for row in self.store.live(states.LIVE)] == []
            assert self.engines == {name: {} for name in HOSTS}
        finally:
            self.store.close()
            shutil.rmtree(self.directory)


Sessions.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSessions = Sessions.TestCase
