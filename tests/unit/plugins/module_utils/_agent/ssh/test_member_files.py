# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of the members in the /etc/hosts of a running container. The other files are tested on an engine."""

from __future__ import annotations

import io
import tarfile
from types import SimpleNamespace
from typing import Any

from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.host_lists import hostfile, hostnames
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.member_files import MemberFiles, hosts_text
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import (
    DEEPSPEED_HOSTFILE,
    HOSTNAMES_FILE,
    MPI_HOSTFILE,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import Followed

ENGINES = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
THREE = plan(request(cluster_size=3), "aaa")
MEMBERS = "10.201.0.2\tmain1\n10.201.0.3\tsub1\n10.201.0.4\tsub2\n"


def test_members_are_added_and_removed() -> None:
    made = ENGINES + "10.201.0.3\tsub1\n10.201.0.4\tsub2\n10.201.0.5\tsub3\n10.201.0.2\tmain1\n"
    assert hosts_text(made, THREE) == ENGINES + MEMBERS
    assert hosts_text(ENGINES + MEMBERS, THREE) == ENGINES + MEMBERS
    assert hosts_text(ENGINES + "10.201.0.2\tmain1\n", THREE) == ENGINES + MEMBERS


def test_other_lines_stay() -> None:
    own = "# mine\n\n192.0.2.1 registry\nfe80::1%eth0 link\n10.201.0.3 database\n"
    assert hosts_text(own + MEMBERS, THREE) == own + MEMBERS
    # The address of a container that has left may be that of another one later.
    assert hosts_text("10.201.0.9 cache\n", THREE) == MEMBERS


def test_names_on_the_fabric_are_those_of_the_members() -> None:
    made = plan(request(cluster_size=2, fabric=True), "aa")
    members = "10.201.0.2\tmain1\n10.201.0.34\tmain1-fabric\n10.201.0.3\tsub1\n10.201.0.35\tsub1-fabric\n"
    assert hosts_text(ENGINES + members, made) == ENGINES + members
    assert hosts_text(ENGINES + "10.201.0.36\tsub2-fabric\n10.201.0.2\tmain1\n", made) == ENGINES + members


class Engine:
    """An engine with running containers of a plan, of which ``former`` were made by another launch, without hosts in their files."""

    def __init__(self, made: Plan, *former: str) -> None:
        self._members = {
            one.id: {
                "Id": one.hostname,
                "State": "running",
                "Labels": {**one.labels, **({label.LAUNCH: "former"} if one.hostname in former else {})},
            }
            for one in made.containers
        }
        self.read: set[str] = set()
        self.fed: dict[str, dict[str, str]] = {}

    def members(self, _session: str) -> dict[str, dict[str, Any]]:
        return self._members

    def inspect(self, *_names: str) -> None: ...

    def read_text(self, identity: str, _path: str, _hostname: str) -> str:
        self.read.add(identity)
        return ""

    def feed(self, identity: str, _command: list[str], archive: bytes, _hostname: str) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            names = [one.name for one in packed if one.isfile()]
            self.fed[identity] = {"/" + name: packed.extractfile(name).read().decode() for name in names}  # type: ignore[union-attr]


def follow(made: Plan, engine: Any) -> Any:
    texts = {"hostfile": hostfile(made), "hostnames": hostnames(made)}
    bundle: Any = SimpleNamespace(known_hosts="", pinned="", client_config="", **texts)
    return MemberFiles(engine, made, "a", bundle).follow(check=False)


def test_only_containers_of_former_launches_are_looked_at() -> None:
    """The others have been made with all members."""
    engine = Engine(THREE, "main1")
    assert follow(THREE, engine) == Followed(changed=True, followed=("main1",))
    assert engine.read == {"main1"}


def test_parallel_shells_reach_containers_that_do_not_compute_after_a_change_too() -> None:
    made = plan(request(roles=[{"name": "ps"}, {"name": "worker", "gpus": 1}]), "aaa")
    engine = Engine(made, "main1")
    follow(made, engine)
    assert engine.fed["main1"][HOSTNAMES_FILE].split() == ["main1", "ps1", "worker1"]
    assert engine.fed["main1"][MPI_HOSTFILE].split()[::2] == ["main1", "worker1"]
    # As in its files at the start, where the role with GPUs decides for all.
    assert engine.fed["main1"][DEEPSPEED_HOSTFILE] == hostfile(made)
