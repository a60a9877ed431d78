# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm over an overlay network: a container on each of three hosts, one of which loses its slurmd."""

from __future__ import annotations

import images
import pytest
from agents_lab import NAMES, Agents
from controller import ROOT, Session, run
from servers import until

HOSTS = ("main1", "sub1", "sub2")
# A host of the lab has two CPUs, so each host holds a single container.
WIDE = {
    "session_image": "slurm",
    "session_apps": ["slurm"],
    "session_launch_timeout": 1200,
    "session_cluster_size": 3,
    "session_cluster_mode": "multi-node",
    "session_cpus": 2,
    "session_memory": "256m",
    "session_shm": "64m",
}


@pytest.fixture(scope="module")
def session(agents: Agents) -> Session:
    """The image is on the controller's engine; the first launch copies it to the hosts."""
    images.environment("slurm")
    command = agents.command("cluster_session", session_name="slurm-wide", **WIDE)
    run(command, cwd=ROOT, env=agents.environment, timeout=1200).check()
    return Session(agents, "slurm-wide")


def states(session: Session) -> dict[str, str]:
    return dict(line.split() for line in session.say("main1", "sinfo -h -N -o '%N %T'").splitlines())


def test_each_host_is_a_node(session: Session) -> None:
    assert [container["agent"] for container in session.document["containers"]] == list(NAMES)
    assert states(session) == dict.fromkeys(HOSTS, "idle")
    assert sorted(session.say("main1", "srun -N3 hostname").split()) == list(HOSTS)


def test_an_array_over_the_hosts_and_a_job_that_depends_on_it(session: Session) -> None:
    """Each of the tasks takes a whole node, so three of them run at once; the job starts when all have succeeded."""
    script = "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID >>array.out; sleep 1\n"
    session.ssh("main1", "cat >array.sh", said=script).check()
    session.say(
        "main1",
        "first=$(sbatch --parsable --array=0-5 -N1 --exclusive -o /dev/null array.sh); "
        "sbatch --wait -N3 -w main1,sub1,sub2 -o after.out --dependency=afterok:$first --wrap 'srun hostname'",
    )
    assert sorted(session.say("main1", "cat after.out").split()) == list(HOSTS)
    found = {host: session.say(host, "cat array.out").split() for host in HOSTS}
    assert sorted(task for tasks in found.values() for task in tasks) == list("012345")
    assert all(found.values()), found


def test_a_job_after_one_that_fails_never_starts(session: Session) -> None:
    first = session.say("main1", "sbatch --parsable -w sub2 -o /dev/null --wrap 'exit 3'")
    after = session.say("main1", f"sbatch --parsable -o /dev/null --dependency=afterok:{first} --wrap true")
    until(lambda: "DependencyNeverSatisfied" in session.say("main1", f"squeue -h -o %r -j {after}"), "the reason")
    session.say("main1", f"scancel {after}")


def test_a_slurmd_of_another_host_that_dies_is_seen(agents: Agents, session: Session) -> None:
    """It is down in sinfo, the session is unhealthy, and both recover."""
    session.say("sub2", "pkill -KILL -x slurmd")
    until(lambda: states(session)["sub2"].startswith("down"), "the end of sub2", 120)

    def unhealthy() -> bool:
        return any(row["name"] == session.name and row["unhealthy"] == ["app slurm"] for row in agents.sessions())

    until(unhealthy, "the unhealthy session", 60)
    until(lambda: states(session)["sub2"] == "idle", "the new slurmd of sub2", 120)
    until(lambda: not unhealthy(), "the healthy session", 60)
    assert sorted(session.say("main1", "srun -N3 hostname").split()) == list(HOSTS)
