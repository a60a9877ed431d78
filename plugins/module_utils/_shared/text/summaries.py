# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write what people read about a session: summaries, the ways to its apps, and logs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, List, Mapping, Sequence, Tuple

from ..codec import Json, non_default_fields, subset
from ..documents.decision import DecidedSession, Decision
from ..documents.plan import Plan, Resources, Role
from ..documents.session_json import SessionApp, tunnel
from ..documents.step_documents import ContainerLog
from ..documents.topology import kept_apps, order_of
from ..errors import escape_control
from ..units import show_bytes, show_cpus, show_seconds
from .table import gpu_parts, table

_NOTHING: Mapping[str, Any] = MappingProxyType({})
# Waiting sessions that a pass shows.
_SHOWN_WAITING = 20
_RESIZED = (
    "Programs that run keep their environment, with the former size; new logins and new containers have the new one "
    "(BACKENDAI_CLUSTER_SIZE, BACKENDAI_CLUSTER_HOSTS, WORLD_SIZE, TF_CONFIG and others)"
)


def plan_to_read(plan: Plan) -> Json:
    """The plan as a diff shows it: without defaults and without labels, which repeat the rest.

    Variables that all containers share appear once.
    """
    common = dict(set.intersection(*(set(one.environment.items()) for one in plan.containers)))
    containers = {}
    for one in plan.containers:
        own = {name: value for name, value in one.environment.items() if name not in common}
        containers[one.hostname] = non_default_fields(replace(one, environment=own, labels={}), uncounted=True)
    return {
        "session": non_default_fields(plan.session, uncounted=True),
        "network": non_default_fields(replace(plan.network, labels={}), uncounted=True),
        "environment": common,
        "containers": containers,
    }


def session_apps(plan: Plan, address: str, folder: str) -> List[SessionApp]:
    """The apps of a launch, as ``session.json`` has them.

    ``address`` is where the controller reaches the agent of main1, and ``folder`` the folder of the session on the controller.
    """
    published = (SessionApp.published(port, address, folder) for port in plan.main.ports)
    return [*published, *_apps_of_roles(plan, folder)]


def _apps_of_roles(plan: Plan, folder: str) -> List[SessionApp]:
    apps = [(one.hostname, app) for one, app in kept_apps(plan) if one.rank]
    return [SessionApp.tunneled(plan.session.id, app, folder, hostname) for hostname, app in apps]


def summary(
    decision: Decision, artifacts: str, check_mode: bool = False, address: str = "", found: Mapping[str, Any] = _NOTHING
) -> List[str]:
    """The report of a launch, as lines.

    ``address`` is where the controller reaches the agent of main1, and ``found`` what was found of a session that lacks nothing.
    """
    session, plan = decision.session, decision.plan
    if decision.outcome == "pending" or plan is None:
        does = "would wait" if check_mode else "is PENDING"
        return [f"Session {session.name} {does}: {decision.reason}."]
    kind = "compute session" if plan.session.size == 1 else f"cluster session, {plan.session.mode}"
    lines = [
        f"Session {session.name}: {_state(decision, plan, check_mode, found)} ({kind})",
        *(_each("%d %s (%s)" % (role.size, role.name, role.image), role) for role in plan.session.roles),
        *([] if plan.session.roles else [_each("Each container", plan.main.resources)]),
        f"Network {plan.network.subnet} ({plan.network.driver})"
        + (f", fabric {plan.network.fabric}" if plan.network.fabric else ""),
    ]
    rows = [(container.hostname, container.agent, container.address) for container in plan.containers[:16]]
    lines += ["  " + line for line in table(("container", "agent", "address"), rows)]
    if plan.session.size > 16:
        lines.append("  … and %d more" % (plan.session.size - 16))
    if decision.former_size and not check_mode:
        lines.append(_RESIZED)
    if decision.outcome == "placed" and not plan.session.mounts:
        lines.append("No data directory: the files of this session are removed with it")
    lines += [f"App {port.name}: port {port.host_port} of {plan.main.agent}" for port in plan.main.ports[1:]]
    lines += [f"App {app.name}: in {one.hostname}, by SSH tunnel" for one, app in kept_apps(plan) if one.rank]
    parts = [part for one in plan.containers for part in gpu_parts(one.resources.gpus)]
    lines += [f"Part of a GPU: {part}" for part in dict.fromkeys(parts)]
    lines += _gpu_warning(plan)
    if check_mode:
        return lines
    folder = f"{artifacts.rstrip('/')}/{session.name}"
    lines += _ways_to_apps(plan, folder, address)
    lines.append(f"Enter it: ssh -F {folder}/ssh_config main1")
    return lines


def _each(whose: str, amounts: Resources | Role) -> str:
    memory, shm = show_bytes(amounts.memory), show_bytes(amounts.shm)
    return f"{whose}: {show_cpus(amounts.millicpus)} CPUs, {memory} memory, {shm} shared memory"


def waiting_summary(waiting: Sequence[Any]) -> List[str]:
    """The sessions that a pass over the queue leaves waiting, first to last; each has a name and a reason."""
    lines = [f"Session {one.name} is PENDING: {one.reason}." for one in waiting[:_SHOWN_WAITING]]
    more = len(waiting) - len(lines)
    return lines + (["… and %d more wait; sessions.yml lists them" % more] if more else [])


def _gpu_warning(plan: Plan) -> List[str]:
    """A warning if several containers on an agent have GPUs of their own: NCCL takes containers for different hosts."""
    with_gpus = [one.agent for one in plan.containers if sum(gpu.shares for gpu in one.resources.gpus) >= 1]
    agents = [name for name in dict.fromkeys(with_gpus) if with_gpus.count(name) > 1]
    if not agents:
        return []
    found = "several containers have GPUs of the same agent ({}): NCCL connects them by sockets, not by NVLink".format(
        ", ".join(agents)
    )
    return [f"Warning: {found}; use session_per_agent: 1, and give the container of each agent all its GPUs"]


def _ways_to_apps(plan: Plan, folder: str, address: str) -> List[str]:
    """Where the URLs are, and the commands that make loopback ports of another machine ports of this machine."""
    lines = []
    if kept_apps(plan):
        lines.append(f"Open the apps in a browser: their URLs, with tokens, are in {folder}/apps")
    private = [port for port in plan.main.ports[1:] if port.host_ip.startswith("127.")]
    if private and not address.startswith("127."):
        lines.append(f"Each needs a connection to {plan.main.agent} first, which lasts until it is stopped:")
        lines += [f"  {tunnel(folder, port.host_port, port.container_port)}" for port in private]
    for app in _apps_of_roles(plan, folder):
        lines += [
            f"App {app.name} needs a connection to {app.hostname}, which lasts until it is stopped:",
            f"  {app.tunnel}",
        ]
    return lines


def _state(decision: Decision, plan: Plan, check_mode: bool, found: Mapping[str, Any]) -> str:
    if decision.outcome == "placed":
        return "would be launched" if check_mode else "RUNNING"
    changes = _repairs(decision, plan, check_mode, found) + _new_limits(decision, plan, check_mode)
    if found.get("no_login"):
        return "RUNNING (degraded), %s" % ", ".join([*changes, str(found["no_login"])])
    return "RUNNING, %s" % (", ".join(changes) or "nothing to do")


def _repairs(decision: Decision, plan: Plan, check_mode: bool, found: Mapping[str, Any]) -> List[str]:
    """Return what a launch does about a session that runs: at most one of these."""
    if decision.outcome == "repair":
        would = "would be " if check_mode else ""
        moves = _moves(decision.moves, check_mode)
        if decision.restarts_all:
            return [f"all containers {would}restarted", *moves]
        gone = {move[0] for move in decision.moves}
        added = decision.added
        removed = [escape_control(name) for name, _agent in decision.removed if name not in added]
        changes = (
            ("added", [one.hostname for one in plan.containers if one.hostname in added]),
            ("removed", sorted(removed, key=lambda name: (len(name), name))),
            ("brought back", [name for name in decision.missing if name not in gone]),
        )
        shown = moves + [f"{', '.join(names)} {would}{did}" for did, names in changes if names]
        return shown or [f"its files {would or 'are '}completed"]
    if decision.has_next_command:
        return ["another command %s" % ("would run" if check_mode else "runs now")]
    apps = ", ".join(f"app {name}" for name in decision.failed_apps)
    if apps:
        return [f"{apps} {'would be started again' if check_mode else 'started again'}"]
    return _written(found, check_mode)


def _written(found: Mapping[str, Any], check_mode: bool) -> List[str]:
    """Files that were lost. A check mode does not look into containers."""
    restored = ["its files on this controller %s written again" % ("would be" if check_mode else "are")]
    refilled = [f"its files in {', '.join(found['refilled'])} are written again"] if found.get("refilled") else []
    return (restored if found.get("restored_files") else []) + refilled


def _moves(moved: Sequence[Tuple[str, str, str]], check_mode: bool) -> List[str]:
    """
    >>> _moves([("sub2", "c", "b")], False)
    ['sub2 made again on b in place of c, without the files that it had stored in itself']
    """
    will = "would be " if check_mode else ""
    moves = [f"{name} {will}made again on {new} in place of {old}" for name, old, new in moved]
    return [f"{', '.join(moves)}, without the files that it had stored in itself"] if moves else []


def _new_limits(decision: Decision, plan: Plan, check_mode: bool) -> List[str]:
    values = subset(plan.session, *decision.new_limits).items()
    shown = [f"{name.replace('_', ' ')} {show_seconds(value) if value else 'none'}" for name, value in values]
    return [f"limit {'would change' if check_mode else 'changed'}: {', '.join(shown)}"] if shown else []


def termination_summary(session: DecidedSession | None, name: str, check_mode: bool = False) -> str:
    """The report of a termination. ``session`` is None if no live session has the name."""
    if session is None:
        return f"There is no live session {name}: nothing to end."
    if check_mode:
        does = "cancelled" if session.state == "CANCELLED" else "terminated"
        return f"Session {session.name} would be {does}."
    return f"Session {session.name}: {session.state} ({session.reason})"


def match_summary(names: Sequence[str], pattern: str, refused: bool = False) -> str:
    """Return what a pattern of names terminates, or would terminate if the user meant several sessions.

    >>> match_summary(["sweep-1", "sweep-2"], "sweep-*")
    '2 live sessions match sweep-*: sweep-1, sweep-2'
    """
    count = "%d live session%s" % (len(names), " matches" if len(names) == 1 else "s match")
    advice = "; add --many, or with the playbook -e session_many=true, to terminate them." if refused else ""
    return f"{count} {pattern}: {', '.join(names) or 'nothing to end'}{advice}"


def logs_view(logs: Sequence[ContainerLog], hostnames: Sequence[str] = (), tail: int = 200) -> List[str]:
    """The last lines of each container's log, each line after its container's name, main1 first."""
    lines: List[str] = []
    wanted = [log for log in logs if not hostnames or log.hostname in hostnames]
    for log in sorted(wanted, key=lambda log: order_of(log.hostname)):
        last = log.text.splitlines()[-tail:]
        lines += [f"{log.hostname}: {line}" for line in last] or [f"{log.hostname}: (nothing)"]
    return lines
