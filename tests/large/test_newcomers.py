# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of README.md on bare hosts of newer Debian releases, which have no engine: one machine is controller, head and agent.

Each host is a container of the lab's bare image without the packages that README.md does not name, and has an engine of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from newcomer import Newcomer, checkout, newcomer_on
from readme import steps

# What a host inside a container needs for an engine of its own, on a kernel where --privileged may be refused.
RIGHTS = (
    "--cap-add=ALL --cap-drop=SYS_RESOURCE --security-opt=seccomp=unconfined --security-opt=apparmor=unconfined "
    "--security-opt=systempaths=unconfined --cgroupns=host --volume=/sys/fs/cgroup:/sys/fs/cgroup:rw "
    "--volume=/var/lib/docker --tmpfs=/run --tmpfs=/tmp:exec"
).split()
DEVICES = "--device-cgroup-rule=a *:* rwm"
HOME = "/root/cluster.compute"


@pytest.fixture(params=["trixie", "sid"])
def newcomer(engine_host: str, request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    with newcomer_on(request.param, [*RIGHTS, DEVICES]) as host:
        options = json.dumps({"cgroup-parent": f"/cluster-compute-test/{host.name[21:]}"})
        host.type(f"mkdir -p /etc/docker {HOME}; echo '{options}' >/etc/docker/daemon.json").check()
        host.prepare()
        host.write(HOME, checkout())
        yield host


def test_the_readme_on_a_bare_host(newcomer: Newcomer) -> None:
    launch, use, check, build = steps()
    assert "Session demo: RUNNING (cluster session, single-node)" in newcomer.type(launch, HOME).check().text
    assert "Session demo: RUNNING, nothing to do" in newcomer.type(launch, HOME).check().text
    assert "Session train: would be launched" in newcomer.type(check, HOME).check().text
    used = newcomer.type(use, HOME).check().text
    assert used.splitlines()[:2] == ["sub1", "I am rank 2 of 3, the master is main1"]
    assert "Session demo: TERMINATED" in used
    assert newcomer.type("docker ps --all --quiet; docker network ls --quiet --filter type=custom").check().text == ""
    assert "cluster-compute-1.0.0.tar.gz" in newcomer.type(build, HOME).check().text
