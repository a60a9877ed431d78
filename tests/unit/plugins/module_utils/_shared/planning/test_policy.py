# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy of the site: each limit refuses a request with its rule, or holds it back."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from samples import exactly, request

from ansible_collections.cluster.compute.plugins.module_utils._head.quotas import policy_lines, quota_entries
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import SitePolicy, parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import (
    Use,
    check_policy,
    in_permitted_group,
    over_quota,
    permit_commit,
    permit_relays,
    permitted_folders,
)

GIB = 1 << 30
MINE = "(policy of this site)"
SOCKET = {"source": "/var/run/docker.sock", "target": "/var/run/docker.sock"}
WEB = {"name": "web", "port": 80, "public": True}
DISGUISED = {"source": "vol", "target": "/data", "options": {"type": "none", "o": "bind", "device": "/"}}


def mount(source: str, **more: Any) -> dict[str, Any]:
    return {"mounts": [{"source": source, "target": "/data", **more}]}


@pytest.mark.parametrize(
    ("limits", "asked", "message"),
    [
        (
            {"resource_groups": ["cpu", "old"]},
            {"resource_group": "gpu"},
            "session_resource_group: 'gpu': must be one of: cpu, old %s.",
        ),
        (
            {"images": ["hub/*", "busybox:*"]},
            {"image": "evil:1"},
            "session_image: 'evil:1': must match one of: hub/*, busybox:* %s.",
        ),
        (
            {"mounts": ["/data/a"]},
            {"mounts": [SOCKET]},
            "session_mounts: '/var/run/docker.sock': must be a permitted directory: /data/a %s.",
        ),
        ({"mounts": []}, mount("/"), "session_mounts: '/': must be a permitted directory: there is none %s."),
        (
            {"mounts": ["/data/a"]},
            mount("/data/a/b"),
            "session_mounts: '/data/a/b': must be a permitted directory: /data/a %s.",
        ),
        (
            {"mounts": ["/data/"]},
            mount("/data/../etc"),
            "session_mounts: '/data/../etc': must be a permitted directory: /data/ %s.",
        ),
        (
            {"mounts": ["/data/"]},
            mount("/database"),
            "session_mounts: '/database': must be a permitted directory: /data/ %s.",
        ),
        ({"volumes": "none"}, mount("cache"), "session_mounts: 'cache': must be no volume %s."),
        ({"volumes": "plain"}, {"mounts": [DISGUISED]}, None),
        (
            {"volumes": "plain"},
            mount("srv:/x", type="nfs"),
            "session_mounts: 'srv:/x': must be a volume without options %s.",
        ),
        (
            {"volumes": "own"},
            mount("srv:/x", type="nfs"),
            "session_mounts: 'srv:/x': must be a volume without options %s.",
        ),
        (
            {"sessions": 4},
            {"apps": [{"name": "web", "port": 80, "preferred_port": 443}]},
            "session_apps: 443: must be a preferred port within 1024-65535 %s.",
        ),
        (
            {"port_range": "30000-31000"},
            {"apps": [{"name": "web", "port": 80, "preferred_port": 8080}]},
            "session_apps: 8080: must be a preferred port within 30000-31000 %s.",
        ),
        ({"public_apps": False}, {"apps": [WEB]}, "session_apps: 'web': must not be public %s."),
        (
            {"port_range": "30000-30100"},
            {"port_range": "30000-31000"},
            "session_port_range: '30000-31000': must be within 30000-30100 %s.",
        ),
        ({"lifetime": 3600}, {}, "session_lifetime: 0: must be from 1 to 3600 seconds %s."),
        ({"lifetime": 3600}, {"lifetime": 3601}, "session_lifetime: 3601: must be from 1 to 3600 seconds %s."),
        ({"idle_timeout": 3600}, {}, "session_idle_timeout: 0: must be from 1 to 3600 seconds %s."),
        (
            {"idle_timeout": 3600},
            {"idle_timeout": 3601},
            "session_idle_timeout: 3601: must be from 1 to 3600 seconds %s.",
        ),
        ({"priority": 20}, {"priority": 21}, "session_priority: 21: must be at most 20 %s."),
        ({"grace": 60}, {"grace": 61}, "session_grace: 61: must be at most 60 %s."),
        ({"sessions": 4}, {"priority": 11}, "session_priority: 11: must be at most 10 %s."),
        ({"sessions": 4}, {"pids": 32769}, "session_pids: 32769: must be at most 32768 %s."),
        ({"pids": 4096}, {"pids": 4097}, "session_pids: 4097: must be at most 4096 %s."),
        (
            {"logs": "100m"},
            {"log_size": "60m", "log_files": 2},
            "session_log_size: '60m': must, times session_log_files, be at most 100m %s.",
        ),
        ({"disk": "10g"}, {}, "session_disk: '0b': must be set, to at most 10g %s."),
        ({"disk": "10g"}, {"disk": "11g"}, "session_disk: '11g': must be set, to at most 10g %s."),
        ({"rdma": False}, {"rdma": True}, "session_rdma: True: must be false %s."),
        ({"fabric": False}, {"fabric": True}, "session_fabric: True: must be false %s."),
    ],
)
def test_a_rule_refuses_a_request(limits: dict[str, Any], asked: dict[str, Any], message: str | None) -> None:
    policies = [{"default": limits}, {"owners": {"alice": limits}}, {"groups": {"g": {"owners": ["alice"], **limits}}}]
    for policy in policies:
        expected = exactly(message % MINE) if message else "session_mounts: "
        with pytest.raises(InputError, match=expected):
            check_policy(parse_policy(policy), request(**asked))
        check_policy(parse_policy(policy if "default" not in policy else {}), request(**{**asked, "owner": "bob"}))


def test_a_preferred_port_below_1024_needs_a_site_without_limits_for_its_owner() -> None:
    asked = request(apps=[{"name": "web", "port": 80, "preferred_port": 443}])
    for policy in ({}, {"queue": {"policy": "strict"}}, {"owners": {"bob": {"sessions": 1}}}):
        check_policy(parse_policy(policy), asked)


@pytest.mark.parametrize(
    ("pattern", "image", "permitted"),
    [
        ("ubuntu:*", "ubuntu:22.04", True),
        ("ubuntu:*", "ubuntu", True),
        ("ubuntu:*", "ubuntu:5000/evil/image:1", False),
        ("ubuntu:2*", "ubuntu:5000/evil:24.04", False),
        ("ubuntu:22.*", "ubuntu:24.04", False),
        ("hub:5000/team/*", "hub:5000/team/a:1", True),
        ("hub/team/*", "hub/team/a@sha256:" + "0" * 64, True),
        ("hub/team/a", "hub/team/b", False),
        ("*", "any:5000/thing:1", True),
    ],
)
def test_a_pattern_permits_images(pattern: str, image: str, permitted: bool) -> None:
    site = parse_policy({"default": {"images": [pattern]}})
    expected = contextlib.nullcontext() if permitted else pytest.raises(InputError, match="must match one of")
    with expected:
        check_policy(site, request(image=image))


@pytest.mark.parametrize(
    ("policy", "source", "folders"),
    [
        ({"default": {"mounts": ["/pool/"]}}, "/pool/x/y/", ("/pool",)),
        ({"default": {"mounts": ["/pool/"]}}, "/pool", ()),
        ({"default": {"mounts": ["/pool/", "/pool/x"]}}, "/pool/x", ("/pool",)),
        (
            {"default": {"mounts": ["/pool"]}, "owners": {"alice": {"mounts": ["/pool/alice"]}}},
            "/pool/alice",
            ("/pool",),
        ),
        ({"groups": {"g": {"owners": ["alice"], "mounts": ["/pool/"]}}}, "/pool/x", ("/pool",)),
        ({"default": {"mounts": ["/"]}}, "/pool", ("/",)),
        ({"owners": {"bob": {"mounts": ["/pool/"]}}}, "/pool/x", ()),
        ({}, "/pool/x", ()),
    ],
)
def test_no_link_is_followed_below_a_folder_that_somebody_may_mount(
    policy: dict[str, Any], source: str, folders: tuple[str, ...]
) -> None:
    assert permitted_folders(parse_policy(policy), request(**mount(source))) == folders


def test_nothing_is_mounted_within_a_folder_whose_users_can_make_links() -> None:
    site = parse_policy({"default": {"mounts": ["/pool/"]}})
    mounts = [{"source": "/pool/x", "target": "/data"}, {"source": "cache", "target": "/data/cache"}]
    expected = exactly(f"session_mounts: '/data/cache': must not lie in /data, the target of another mount {MINE}.")
    with pytest.raises(InputError, match=expected):
        check_policy(site, request(mounts=mounts))
    check_policy(site, request(mounts=[{**mounts[0], "source": "/pool"}, mounts[1]]))


@pytest.mark.parametrize("source", ["/data/a", "/data/a/", "/srv/pool/x/y"])
def test_permitted_folders(source: str) -> None:
    check_policy(parse_policy({"default": {"mounts": ["/data/a", "/srv/pool/"]}}), request(**mount(source)))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"containers": 3},
            "session_cluster_size: 4: makes 4 containers in all, and the policy of this site permits alice 3 at a time.",
        ),
        ({"cpus": 7}, "session_cpus: '2': makes 8 CPUs in all, and the policy of this site permits alice 7 at a time."),
        (
            {"memory": "3g"},
            "session_memory: '1g': makes 4g memory in all, and the policy of this site permits alice 3g at a time.",
        ),
        ({"gpus": 3}, "session_gpus: '1': makes 4 GPUs in all, and the policy of this site permits alice 3 at a time."),
        (
            {"sessions": 0},
            "session_name: 'train': makes 1 sessions in all, and the policy of this site permits alice 0 at a time.",
        ),
    ],
)
def test_a_request_that_could_never_keep_its_quota_is_refused(limits: dict[str, Any], message: str) -> None:
    asked = request(cluster_size=4, cpus=2, gpus=1)
    with pytest.raises(InputError, match=exactly(message)):
        check_policy(parse_policy({"default": limits}), asked)


HELD = Use(2, 4, 4000, 4 * GIB, 1.5)


@pytest.mark.parametrize(
    ("policy", "owner", "reason"),
    [
        ({}, "alice", ""),
        ({"default": {"sessions": 3}}, "alice", ""),
        (
            {"default": {"sessions": 2}},
            "alice",
            "alice has 2 of the 2 sessions that the policy of this site permits, and it needs 1",
        ),
        ({"default": {"sessions": 2}}, "carol", ""),
        ({"default": {"cpus": 5}, "owners": {"alice": {"cpus": 6}}}, "alice", ""),
        (
            {"default": {"cpus": 5}},
            "alice",
            "alice has 4 of the 5 CPUs that the policy of this site permits, and it needs 2",
        ),
        (
            {"default": {"memory": "5g"}},
            "alice",
            "alice has 4g of the 5g memory that the policy of this site permits, and it needs 2g",
        ),
        (
            {"default": {"gpus": 2}},
            "alice",
            "alice has 1.5 of the 2 GPUs that the policy of this site permits, and it needs 1",
        ),
        (
            {"groups": {"lab": {"owners": ["alice", "bob"], "containers": 9}}},
            "alice",
            "group lab has 8 of the 9 containers that the policy of this site permits, and it needs 2",
        ),
        ({"groups": {"lab": {"owners": ["alice", "bob"], "containers": 9}}}, "carol", ""),
    ],
)
def test_a_quota_holds_a_request_back(policy: dict[str, Any], owner: str, reason: str) -> None:
    asked = request(owner=owner, cluster_size=2, gpus=0.5)
    assert over_quota(parse_policy(policy), {"alice": HELD, "bob": HELD}, asked) == reason


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([1], "agent_policy: [1]: must be a dictionary."),
        ({"limits": {}}, "agent_policy: 'limits': must be one of default, owners, groups, queue."),
        ({"default": {"gpu": 1}}, None),
        ({"default": {"gpus": "many"}}, None),
        (
            {"default": {"mounts": ["data"]}},
            "agent_policy.default.mounts: 'data': must be an absolute path without '.' and '..'.",
        ),
        ({"owners": {"a b": {}}}, None),
        (
            {"default": {"port_range": "1-2"}},
            "agent_policy.default.port_range: '1-2': must be FIRST-LAST with ports from 1024 to 65535.",
        ),
        ({"queue": {"policy": "fifo"}}, "agent_policy.queue.policy: 'fifo': must be one of: backfill, strict."),
        ({"queue": {"shares": {"alice": 0}}}, "agent_policy.queue.shares.alice: 0: must be at least 0.000001."),
        # Divided by the sum of the shares, it would be 0.
        (
            {"queue": {"shares": {"alice": 5e-324}}},
            "agent_policy.queue.shares.alice: 5e-324: must be at least 0.000001.",
        ),
    ],
)
def test_a_policy_with_a_mistake_is_refused(policy: Any, message: str | None) -> None:
    with pytest.raises(InputError, match=exactly(message) if message else "agent_policy|session_owner"):
        parse_policy(policy)


def test_the_table_shows_what_is_used_of_what_is_permitted() -> None:
    policy = parse_policy(
        {
            "default": {"gpus": 2, "lifetime": 3600},
            "groups": {"lab": {"owners": ["alice", "bob"], "cpus": 16, "images": ["hub/*"]}},
        }
    )
    assert policy_lines(policy, quota_entries(policy, {"alice": HELD})) == [
        "WHO          SESSIONS  CONTAINERS  CPUS     MEMORY  GPUS",
        "owner alice  2         4           4        4g      1.5 of 2",
        "owner bob    0         0           0        0b      0 of 2",
        "group lab    2         4           4 of 16  4g      1.5",
        "default: lifetime 3600",
        "group lab: images hub/*",
    ]
    assert policy_lines(SitePolicy(), []) == ["The site has no policy."]


@pytest.mark.parametrize(
    ("policy", "asked", "group"),
    [
        ({"default": {"resource_groups": ["gpu"]}}, {}, "gpu"),
        ({"default": {"resource_groups": ["gpu", "cpu"]}}, {}, "default"),
        ({"default": {"resource_groups": ["gpu"]}}, {"resource_group": "cpu"}, "cpu"),
        ({"default": {"resource_groups": ["gpu"]}, "owners": {"alice": {"resource_groups": ["cpu"]}}}, {}, "cpu"),
        ({}, {}, "default"),
    ],
)
def test_the_only_permitted_group_is_chosen(policy: dict[str, Any], asked: dict[str, Any], group: str) -> None:
    assert in_permitted_group(parse_policy(policy), request(owner="alice", **asked)).group == group


@pytest.mark.parametrize(
    ("limits", "app", "ports", "message"),
    [
        ({"public_apps": False}, {"public": True}, "30000-31000", "session_apps: 'web': must not be public %s."),
        ({"port_range": "2000-2010"}, {}, "2000-2011", "session_port_range: '2000-2011': must be within 2000-2010 %s."),
        (
            {"port_range": "2000-2010"},
            {"preferred_port": 3000},
            "2000-2010",
            "session_apps: 3000: must be a preferred port within 2000-2010 %s.",
        ),
        (
            {"sessions": 1},
            {"preferred_port": 443},
            "30000-31000",
            "session_apps: 443: must be a preferred port within 1024-65535 %s.",
        ),
    ],
)
def test_relays_of_a_running_session_keep_the_policy(
    limits: dict[str, Any], app: dict[str, Any], ports: str, message: str
) -> None:
    apps = request(apps=[{"name": "web", "port": 8000, **app}]).apps
    with pytest.raises(InputError, match=exactly(message % MINE)):
        permit_relays(parse_policy({"default": limits}), "alice", apps, ports)
    permit_relays(parse_policy({"owners": {"bob": limits}}), "alice", apps, ports)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"commit": False},
            "session_commit_image: 'team/train:2': must not be made: alice may not commit containers %s.",
        ),
        ({"images": ["hub/*"]}, "session_commit_image: 'team/train:2': must match one of: hub/* %s."),
    ],
)
def test_images_of_containers_keep_the_policy(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=exactly(message % MINE)):
        permit_commit(parse_policy({"default": limits}), "alice", "team/train:2")
    permit_commit(parse_policy({"owners": {"bob": limits}}), "alice", "team/train:2")
    permit_commit(parse_policy({"default": {"commit": True, "images": ["team/*:2"]}}), "alice", "team/train:2")
