# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A set of containers that something else has started: its names, its plan, its lines of /etc/hosts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_set import (
    members_of,
    plan_of,
    user_of,
    with_hosts,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Resources, User
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import RunningContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, InputError

ENGINE_HOSTS = "127.0.0.1\tlocalhost\n172.18.0.2\t0123456789ab\n"


def seen(name: str, address: str = "172.18.0.2", network: str = "n" * 64) -> RunningContainer:
    return RunningContainer(name, "0" * 64, network, address, 16, Resources(2000, 1 << 30))


def made(*found: tuple[str, RunningContainer], entries: list[dict[str, str]] | None = None) -> Plan:
    """The plan of what hosts have found, by default with a member for each container."""
    by_host: dict[str, list[RunningContainer]] = {}
    for host, container in found:
        by_host.setdefault(host, []).append(container)
    return plan_of("web-set", members_of(entries or [{"name": one.name} for _host, one in found]), by_host, User())


def test_a_member_has_its_own_hostname_or_that_of_the_engine() -> None:
    plan = made(
        ("a", seen("web")),
        ("b", seen("db", "172.18.0.3")),
        entries=[{"name": "db", "hostname": "main1"}, {"name": "web"}],
    )
    assert plan.addresses == (("main1", "172.18.0.3"), ("web", "172.18.0.2"))
    assert plan.agents == ["b", "a"]
    assert plan.network.subnet == "172.18.0.0/16"
    assert plan.main.resources.slots == 2


def test_the_same_name_gives_the_same_identity_and_another_name_another_one() -> None:
    first, other = (
        made(("a", seen("web"))),
        plan_of("other", members_of([{"name": "web"}]), {"a": [seen("web")]}, User()),
    )
    assert first.session.id == made(("a", seen("web", "172.18.0.9"))).session.id != other.session.id


def test_the_plan_survives_its_way_to_an_agent() -> None:
    plan = made(("a", seen("web")), ("b", seen("db", "172.18.0.3")))
    part = plan.part("b")
    assert [one.hostname for one in part.containers] == ["db"]
    assert part.addresses == plan.addresses


@pytest.mark.parametrize("name", ["Web", "my_db", "1st", "x" * 64, "localhost", "a.b", "web-"])
def test_a_name_that_is_no_hostname_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="set the hostname of the container"):
        members_of([{"name": name}])


def test_two_members_of_one_hostname_are_refused() -> None:
    with pytest.raises(InputError, match="'web': is the hostname of two containers"):
        members_of([{"name": "web"}, {"name": "web", "host": "b"}])


def test_a_container_that_no_host_has_is_refused() -> None:
    with pytest.raises(InputError, match="'db': must be a running container of a host of the play"):
        made(("a", seen("web")), entries=[{"name": "db"}])
    with pytest.raises(InputError, match="'web': must be a running container of b"):
        made(("a", seen("web")), entries=[{"name": "web", "host": "b"}])


def test_a_name_that_two_hosts_have_needs_its_host() -> None:
    found = (("a", seen("web")), ("b", seen("web", "172.18.0.3")))
    with pytest.raises(InputError, match="a and b have one of that name; set its host"):
        made(*found, entries=[{"name": "web"}])
    plan = made(*found, entries=[{"name": "web", "host": "b"}])
    assert plan.addresses == (("web", "172.18.0.3"),)


def test_containers_of_different_networks_are_refused() -> None:
    with pytest.raises(ConflictError, match="db on b is in another network than web on a"):
        made(("a", seen("web")), ("b", seen("db", network="m" * 64)))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"name": "root"}, "other than root"),
        ({"name": "a b"}, "other than root"),
        ({"uid": 0}, "IDs from 1"),
        ({"gid": 2**31}, "IDs from 1"),
        ({"home": "home"}, "absolute path"),
        ({"home": "/a/../b"}, "absolute path"),
        ({"home": "/a:b"}, "absolute path"),
    ],
)
def test_an_account_that_ssh_cannot_use_is_refused(values: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        user_of(values)


def test_the_home_follows_the_name_of_the_account() -> None:
    assert user_of({"name": "alice", "uid": None}) == User("alice", 1000, 1000, "/home/alice")


def test_the_lines_of_a_set_come_first_and_replace_those_of_before() -> None:
    before, after = made(("a", seen("web"))), made(("a", seen("web", "172.18.0.9")))
    text = with_hosts(ENGINE_HOSTS, before)
    assert text == "# web-set: begin (cluster.compute)\n172.18.0.2 web\n# web-set: end\n" + ENGINE_HOSTS
    assert with_hosts(text, before) == text
    assert with_hosts(text, after) == text.replace("172.18.0.2 web", "172.18.0.9 web")


def test_a_block_without_its_end_is_kept() -> None:
    plan, broken = made(("a", seen("web"))), "# web-set: begin (cluster.compute)\n10.0.0.1 other\n"
    assert with_hosts(broken, plan).endswith("# web-set: end\n" + broken)
