# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of the members in the /etc/hosts of a running container. The other files are tested on an engine."""

from __future__ import annotations

from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._ssh.member_files import hosts_text

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
