# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one agent's examination means: findings, each with what was found and how it is mended. docs/check.md lists them."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Callable, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes
from ansible_collections.cluster.compute.plugins.module_utils._planning.addresses import choose_subnet

OK, WARN, FAIL = "ok", "warn", "fail"
PROVISION = "run provision_agents.yml"

OLDEST_ENGINE = (20, 10)
OLDEST_SDK = (5, 0)
CLOCK_WARN, CLOCK_FAIL = 2.0, 30.0
DISK_WARN, DISK_FAIL = 10 << 30, 2 << 30
NOFILE_WARN = 65536
MEMLOCK_WARN = 64 << 20


@dataclass(frozen=True)
class Finding:
    """A line of the table. ``where`` is an agent, a pair of them as ``agent1 -> agent2``, or all of them."""

    check: str
    where: str
    status: str
    found: str
    remedy: str = ""

    def to_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Wanted:
    """What the inventory is to be fit for."""

    pools: Sequence[str] = ("10.201.0.0/16",)
    encrypted: bool = False
    head: str = ""


Verdict = Tuple[str, str, str]
Check = Tuple[str, Callable[[Json, Wanted], Verdict]]


def judge_agent(report: Json, wanted: Wanted, several: bool) -> List[Finding]:
    """Everything that concerns one agent by itself."""
    name = report["name"]
    if not report["reachable"]:
        return [
            Finding(
                "reachable", name, FAIL, report["reason"], "see that the host is up and its engine runs; " + PROVISION
            )
        ]
    checks = _ALONE + (_AMONG_OTHERS if several else ())
    return [Finding(check, name, *verdict(report, wanted)) for check, verdict in checks]


def _engine(report: Json, _wanted: Wanted) -> Verdict:
    version = report["engine"]
    if _numbers(version) < OLDEST_ENGINE:
        return FAIL, version, "upgrade its Docker Engine to 20.10 or later"
    return OK, version, ""


def _sdk(report: Json, _wanted: Wanted) -> Verdict:
    found = "%s, Python %s" % (report["sdk"], report["python"])
    if _numbers(report["sdk"]) < OLDEST_SDK:
        return FAIL, found, "upgrade the Docker SDK for Python to 5.0 or later: pip install --upgrade docker"
    return OK, found, ""


def _ground(report: Json, _wanted: Wanted) -> Verdict:
    parts = {"SSH runtime": report["runtime"], "reference image": report["image"]}
    missing = [name for name, there in parts.items() if not there]
    if missing:
        return FAIL, "no %s" % " and no ".join(missing), PROVISION
    return OK, " and ".join(parts), ""


def _clock(report: Json, _wanted: Wanted) -> Verdict:
    off = report["clock"]
    if abs(off) < CLOCK_WARN:
        return OK, "within %g s of the controller's" % CLOCK_WARN, ""
    found = "%s %s the controller's" % (_duration(abs(off)), "ahead of" if off > 0 else "behind")
    return (
        (FAIL if abs(off) >= CLOCK_FAIL else WARN),
        found,
        "run a time service (chrony, systemd-timesyncd) on all hosts",
    )


def _disk(report: Json, _wanted: Wanted) -> Verdict:
    free = report["disk_free"]
    if free < 0:
        return WARN, "%s: cannot be looked at" % report["disk"], "look there by hand"
    found = "%s free in %s" % (show_bytes(free), report["disk"])
    if free >= DISK_WARN:
        return OK, found, ""
    return (FAIL if free < DISK_FAIL else WARN), found, "free some space, such as with docker system prune"


def _cgroups(report: Json, _wanted: Wanted) -> Verdict:
    has = report["cgroups"]
    lacking = [name for name in ("CPU quota", "memory limit") if not has[name]]
    found = "version %s, %s" % (report["cgroup_version"], ", ".join(name for name, there in has.items() if there))
    if lacking:
        return FAIL, "no %s" % " and no ".join(lacking), "enable these cgroup controllers in its kernel"
    less = [name for name in has if not has[name]]
    if less:
        remedy = (
            "boot with cgroup_enable=memory swapaccount=1"
            if less == ["swap limit"]
            else "enable these cgroup controllers"
        )
        return WARN, "%s; no %s" % (found, " and no ".join(less)), remedy
    return OK, found, ""


def _limits(report: Json, _wanted: Wanted) -> Verdict:
    nofile, memlock = report["nofile"], report["memlock"]
    if not nofile and not memlock:
        return OK, "as the engine gives them", ""
    found = "nofile %s, memlock %s" % (_limit(nofile, str), _limit(memlock, show_bytes))
    if 0 < nofile < NOFILE_WARN or 0 < memlock < MEMLOCK_WARN:
        return WARN, found, "raise LimitNOFILE and LimitMEMLOCK of its engine, for large jobs and RDMA"
    return OK, found, ""


def _pool(report: Json, wanted: Wanted) -> Verdict:
    taken = [*report["routes"], *report["networks"]]
    try:
        choose_subnet(2, wanted.pools, taken)
    except ConflictError:
        return (
            FAIL,
            "%s: nothing of it is free of its routes" % ", ".join(wanted.pools),
            "set session_network_pool to a free network",
        )
    return OK, "%s has room beside its routes" % ", ".join(wanted.pools), ""


def _nfs(report: Json, _wanted: Wanted) -> Verdict:
    return OK, "client found" if report["nfs"] else "no client: mounts of type nfs do not work here, all else does", ""


def _mtu(report: Json, _wanted: Wanted) -> Verdict:
    return OK, "%d at %s" % (report["mtu"], report["address"]), ""


def _esp(report: Json, wanted: Wanted) -> Verdict:
    if report["esp"] is None:
        return WARN, "not tried: no reference image", PROVISION
    if report["esp"]:
        return OK, "the kernel takes ESP states", ""
    remedy = "use a kernel with ESP (modules esp4, gcm), or leave session_network_encrypted off"
    return (
        (FAIL if wanted.encrypted else WARN),
        "encrypted sessions cannot work here: %s" % report["esp_reason"],
        remedy,
    )


_ALONE: Tuple[Check, ...] = (
    ("engine", _engine),
    ("sdk", _sdk),
    ("runtime", _ground),
    ("clock", _clock),
    ("disk", _disk),
    ("cgroups", _cgroups),
    ("limits", _limits),
    ("pool", _pool),
    ("nfs", _nfs),
)
_AMONG_OTHERS: Tuple[Check, ...] = (("mtu", _mtu), ("encryption", _esp))


def _numbers(version: str) -> Tuple[int, ...]:
    """
    >>> _numbers("20.10.24+dfsg1")
    (20, 10)
    """
    parts = (version or "0").split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


def _duration(seconds: float) -> str:
    """
    >>> _duration(3600.4), _duration(4.26)
    ('1.0 h', '4.3 s')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return "%.1f %s" % (seconds / size, unit)
    return "%.1f s" % seconds


def _limit(amount: int, show: Callable[[int], str]) -> str:
    return "unlimited" if amount < 0 else show(amount)
