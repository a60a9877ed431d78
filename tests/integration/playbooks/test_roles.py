# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session whose containers are not all alike: resources, images, commands, order of starts, repair, and a role without room."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from app_pages import get, opened, urls
from controller import Controller, Session
from engine_lab import IMAGE, make_image
from servers import until

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

# The workers start when both parameter servers answer, and each worker asks both of them.
ROLES: list[dict[str, Any]] = [
    {
        "name": "worker",
        "size": 1,
        "image": IMAGE,
        "cpus": 0.1,
        "memory": "48m",
        "after": ["ps"],
        "environment": {"SHARD": "<% role %>-<% index %>"},
        "command": "for host in ps1 ps2; do wget -q -O /dev/null http://$host:12345/ || exit 1; done",
        "ready": "test -e /etc/cluster-compute/run/*/exit_code",
    },
    {
        "name": "ps",
        "size": 2,
        "cpus": 0.3,
        "memory": "96m",
        "command": "sleep 3; exec python3 -m http.server 12345",
        "ready": 12345,
    },
]
REPLICAS = "main:1,worker:1,ps:2"
# A page with the hostname for whoever has the token.
PAGE = """
import http.server, os, socket
token = open(os.environ["APP_TOKEN_FILE"]).read()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        may_see = self.path.endswith("?token=" + token)
        self.send_response(200 if may_see else 403)
        self.end_headers()
        self.wfile.write(socket.gethostname().encode() if may_see else b"")
http.server.HTTPServer(("", int(os.environ["APP_PORT"])), Page).serve_forever()
"""
BOARD = {
    "name": "board",
    "port": 6006,
    "ready": "/",
    "command": f"test ! -e broken || exit 3; exec python3 -c '{PAGE}'",
}
BOARDS = [{"name": "ps", "apps": [{**BOARD, "name": "shards"}]}, {"name": "worker", "size": 2, "apps": [BOARD]}]


@pytest.fixture(scope="module")
def session(controller: Controller) -> Session:
    make_image(controller.client)
    return controller.launched("parts", session_roles=ROLES)


def value(session: Session, host: str, name: str) -> str:
    return session.say(host, f'echo "${name}"')


def test_each_role_has_its_own_resources_and_image(session: Session) -> None:
    found = session.containers()
    assert list(found) == ["main1", "worker1", "ps1", "ps2"]
    limits = {name: (one["HostConfig"]["NanoCpus"], one["HostConfig"]["Memory"] >> 20) for name, one in found.items()}
    ps = (300000000, 96)
    assert limits == {"main1": (200000000, 64), "worker1": (100000000, 48), "ps1": ps, "ps2": ps}
    images = {name: one["Config"]["Image"] for name, one in found.items()}
    assert images["worker1"] == IMAGE
    assert images["main1"] == images["ps1"] == images["ps2"] != IMAGE
    shown = [(role["name"], role["size"], role["memory"] >> 20) for role in session.document["roles"]]
    assert shown == [("main", 1, 64), ("worker", 1, 48), ("ps", 2, 96)]


def test_every_container_knows_its_role_and_its_rank(session: Session) -> None:
    names = ("BACKENDAI_CLUSTER_ROLE", "BACKENDAI_CLUSTER_IDX", "BACKENDAI_CLUSTER_LOCAL_RANK", "RANK", "WORLD_SIZE")
    shown = {host: [value(session, host, name) for name in names] for host in ("main1", "worker1", "ps2")}
    assert shown == {
        "main1": ["main", "1", "0", "0", "2"],
        "worker1": ["worker", "1", "1", "1", "2"],
        "ps2": ["ps", "2", "3", "", ""],
    }
    assert value(session, "ps1", "BACKENDAI_CLUSTER_REPLICAS") == REPLICAS
    assert value(session, "worker1", "SHARD") == "worker-1"
    cluster = {"chief": ["main1:12345"], "ps": ["ps1:12345", "ps2:12345"], "worker": ["worker1:12345"]}
    found = json.loads(value(session, "ps2", "TF_CONFIG"))
    assert found == {"cluster": cluster, "task": {"type": "ps", "index": 1}}
    assert session.say("main1", "cat /etc/mpi/hostfile").splitlines() == ["main1 slots=1", "worker1 slots=1"]
    assert session.say("main1", "cat /etc/cluster-compute/hostnames").split() == ["main1", "worker1", "ps1", "ps2"]


def test_every_container_reaches_the_others_by_name(session: Session) -> None:
    hosts = ("main1", "worker1", "ps1", "ps2")
    for host in hosts:
        assert session.say(host, "; ".join(f"ssh {other} hostname" for other in hosts)).split() == list(hosts)


def test_a_role_starts_after_those_that_it_waits_for(session: Session) -> None:
    started = {name: one["State"]["StartedAt"] for name, one in session.containers().items()}
    assert started["worker1"] > max(started["ps1"], started["ps2"])
    assert session.say("worker1", "cat /etc/cluster-compute/run/*/exit_code") == "0"


def test_a_removed_container_comes_back_as_its_role_has_it(controller: Controller, session: Session) -> None:
    before = session.containers()
    controller.client.remove_container(before["ps2"]["Id"], force=True)
    controller.client.remove_container(before["worker1"]["Id"], force=True)
    text = controller.launch("parts", session_roles=ROLES).check().text
    assert "RUNNING, worker1, ps2 brought back" in text
    after = session.containers()
    assert after["ps1"]["Id"] == before["ps1"]["Id"]
    assert after["ps1"]["State"]["StartedAt"] == before["ps1"]["State"]["StartedAt"]
    for host in ("ps2", "worker1"):
        for part in ("NanoCpus", "Memory", "ShmSize"):
            assert after[host]["HostConfig"][part] == before[host]["HostConfig"][part]
        assert after[host]["Config"]["Image"] == before[host]["Config"]["Image"]
    assert session.say("worker1", "cat /etc/cluster-compute/run/*/exit_code") == "0"
    assert controller.launch("parts", session_roles=ROLES).check().changed == 0


def test_a_role_grows_and_shrinks_beside_the_others(controller: Controller, session: Session) -> None:
    """The role in the middle: the ranks of the last role change, and its containers keep addresses and processes."""

    def running() -> dict[str, tuple[str, int, str]]:
        states = {name: one["State"] for name, one in session.containers().items()}
        planned = {one["hostname"]: one["address"] for one in session.document["containers"]}
        return {name: (states[name]["StartedAt"], states[name]["Pid"], planned[name]) for name in planned}

    before = running()
    wider = [{**ROLES[0], "size": 2}, ROLES[1]]
    assert "RUNNING, worker2 would be added" in controller.launch("parts", "--check", session_roles=wider).check().text
    assert running() == before
    assert "RUNNING, worker2 added" in controller.launch("parts", session_roles=wider).check().text
    grown, hosts = running(), ["main1", "worker1", "worker2", "ps1", "ps2"]
    assert list(grown) == hosts
    assert {name: grown[name] for name in before} == before
    for host in hosts:
        assert session.say(host, "; ".join(f"ssh {other} hostname" for other in hosts)).split() == hosts
        assert value(session, host, "BACKENDAI_CLUSTER_REPLICAS") == "main:1,worker:2,ps:2"
        assert session.say(host, "cat /etc/mpi/hostfile").split()[::2] == hosts[:3]
    # Its command has asked both servers, and a new login has the new rank.
    assert session.say("worker2", "cat /etc/cluster-compute/run/*/exit_code") == "0"
    assert value(session, "worker2", "SHARD") == "worker-2"
    assert value(session, "ps2", "BACKENDAI_CLUSTER_LOCAL_RANK") == "4"
    assert "BACKENDAI_CLUSTER_LOCAL_RANK=3" in session.containers()["ps2"]["Config"]["Env"]
    assert json.loads(value(session, "ps2", "TF_CONFIG"))["cluster"]["worker"] == ["worker1:12345", "worker2:12345"]
    assert controller.launch("parts", session_roles=wider).check().changed == 0

    other = controller.launch("parts", session_roles=[{**ROLES[0], "cpus": 0.2}, ROLES[1]])
    assert "other settings (size, roles, of which only the size can change)" in other.message
    scaled = controller.play("cluster_session", session_name="parts", session_cluster_size=6, session_scale=True)
    assert "Session parts has roles: set the size of a role in its session file" in scaled.message

    assert "RUNNING, worker2 removed" in controller.launch("parts", session_roles=ROLES).check().text
    assert running() == before
    assert value(session, "ps2", "BACKENDAI_CLUSTER_HOSTS") == "main1,worker1,ps1,ps2"
    assert controller.launch("parts", session_roles=ROLES).check().changed == 0


def test_a_role_without_room_waits_and_one_that_never_has_room_says_so(
    controller: Controller, session: Session
) -> None:
    # More than the first session leaves of the 64 CPUs, whatever else the engine runs.
    wide = [{"name": "worker", "size": 2, "cpus": 31.6}]
    waiting = controller.launch("wide", session_roles=wide).check()
    assert re.search(r"Session wide is PENDING: role worker: localhost: needs 63\.2 CPUs, \S+ free", waiting.text)
    labels = [one["Labels"] for one in controller.client.containers(all=True)]
    assert not [one for one in labels if one.get("cluster.compute.session.name") == "wide"]
    wide[0]["cpus"] = 40
    wider = " ".join(controller.launch("wider", session_roles=wide).check().text.split())
    never = "no host can hold this as they are: largest free when empty role worker: localhost: needs 80 CPUs, 64 free"
    assert f"Session wider is PENDING: {never}; add a host or ask for less." in wider
    controller.terminate("wider").check()
    assert session.say("main1", "hostname") == "main1"


def test_a_role_that_does_not_become_ready_leaves_nothing(controller: Controller) -> None:
    # So little of a CPU that PID 1 still unpacks its files when the engine has started the container.
    failing = [{"name": "ps", "size": 2, "cpus": 0.01, "command": "sleep 1; exit 3", "ready": 12345}]
    refused = controller.launch("breaks", session_roles=failing)
    assert refused.code == 2
    assert re.search(r"ps[12]: the command of its role ended with exit code 3 before it was ready", refused.message)
    assert Session(controller, "breaks").containers() == {}


def test_a_command_of_a_role_that_fails_later_is_listed(controller: Controller) -> None:
    """The command of the other role has ended, too, without a failure."""
    roles = [{"name": "ps", "command": "exit 4"}, {"name": "worker", "command": "true"}]
    controller.launch("fails", session_roles=roles).check()

    def failures() -> list[str]:
        return [name for one in controller.sessions() if one["name"] == "fails" for name in one["unhealthy"]]

    assert wait_until(failures, deadline_in(60)) == ["command of ps1"]
    shown = controller.play("sessions").check().text
    assert "RUNNING (unhealthy)" in shown
    assert "ps1: the command ended with exit code 4" in shown
    controller.terminate("fails").check()


def test_an_app_of_main1_leads_to_a_service_of_another_role(controller: Controller) -> None:
    """The service listens inside its container only; the line is the one of docs/sessions.md, with other ports."""
    serve = "mkdir /tmp/board; cd /tmp/board; hostname >name; exec python3 -m http.server --bind 127.0.0.1 6006"
    app = {"name": "board", "port": 8000, "command": "exec ssh -N -L 0.0.0.0:8000:localhost:6006 worker1"}
    roles = [{"name": "worker", "command": serve}]
    session = controller.launched("serves", session_roles=roles, session_apps=[app])
    [found] = [one for one in session.document["apps"] if one["name"] == "board"]
    assert get(f"http://{found['address']}:{found['port']}/name") == "worker1\n"
    controller.terminate("serves").check()


@pytest.fixture(scope="module")
def boards(controller: Controller) -> Session:
    return controller.launched("boards", session_roles=BOARDS)


def test_an_app_of_a_role_opens_with_its_token_through_main1(controller: Controller, boards: Session) -> None:
    """It runs in the first container of its role. Only main1 publishes a port."""
    for app, host in (("board", "worker1"), ("shards", "ps1")):
        with opened(boards, app) as url:
            assert get(url) == host
            assert (
                get(url.partition("?")[0] + "?token=" + urls(boards)["shards" if app == "board" else "board"]) == "403"
            )
    published = {name: one["HostConfig"]["PortBindings"] or {} for name, one in boards.containers().items()}
    assert {name: list(ports) for name, ports in published.items()} == {
        "main1": ["22/tcp"],
        "ps1": [],
        "worker1": [],
        "worker2": [],
    }
    token = "cat /etc/cluster-compute/app/*/token"
    assert boards.say("worker1", token) == urls(boards)["board"].rpartition("token=")[2]
    assert [boards.ssh(host, token).code for host in ("main1", "worker2")] == [1, 1]


def test_lists_name_the_apps_of_roles(controller: Controller, boards: Session) -> None:
    [listed] = controller.sessions(session_name="boards")
    assert [(app["name"], app["port"]) for app in listed["apps"]] == [("shards", 0), ("board", 0)]
    shown = controller.play("session_apps", session_name="boards").check().text
    assert "App shards: ready" in shown
    assert "App board: ready" in shown
    again = controller.launch("boards", session_roles=BOARDS).check()
    assert again.changed == 0
    assert "App board: in worker1, by SSH tunnel" in again.text


def test_an_app_of_a_role_restarts_alone(controller: Controller, boards: Session) -> None:
    pid = "pgrep -f http.server"
    before = [boards.say(host, pid) for host in ("worker1", "ps1")]
    controller.play("session_restart", session_name="boards", session_restart_app="board").check()
    after = [boards.say(host, pid) for host in ("worker1", "ps1")]
    assert after[0] != before[0]
    assert after[1] == before[1]
    other = controller.play("session_apps", session_name="boards", session_apps=[BOARD])
    assert "session_apps: 'board': must be another name: worker1 has this app" in other.message


def test_an_app_of_a_role_that_stays_down_makes_the_session_unhealthy(controller: Controller, boards: Session) -> None:
    boards.say("worker1", "touch broken")
    failed = controller.play("session_apps", session_name="boards", session_apps_restart=["board"])
    assert "App board of worker1 ends with exit code 3 before it is ready" in failed.message
    [listed] = controller.sessions(session_name="boards")
    assert listed["unhealthy"] == ["app board"]
    boards.say("worker1", "rm broken")
    assert "RUNNING, app board started again" in controller.launch("boards", session_roles=BOARDS).check().text
    [listed] = controller.sessions(session_name="boards")
    assert listed["unhealthy"] == []


def test_an_app_comes_back_with_its_container_while_its_role_changes_its_size(
    controller: Controller, boards: Session
) -> None:
    before = boards.containers()
    controller.client.remove_container(before["worker1"]["Id"], force=True)
    assert "RUNNING, worker1 brought back" in controller.launch("boards", session_roles=BOARDS).check().text
    for size in (3, 1):
        roles = [BOARDS[0], {**BOARDS[1], "size": size}]
        kept = boards.containers()["worker1"]["State"]["Pid"]
        controller.launch("boards", session_roles=roles).check()
        assert boards.containers()["worker1"]["State"]["Pid"] == kept
        with opened(boards, "board") as url:
            assert get(url) == "worker1"
    controller.play("session_apps", session_name="boards", session_apps_remove=["board"]).check()
    until(lambda: boards.ssh("worker1", "pgrep -f http.server").code != 0, "the end of the app")
    [listed] = controller.sessions(session_name="boards")
    assert [app["name"] for app in listed["apps"]] == ["shards"]
    # No restart waits for it, and no launch lists it again.
    controller.play("session_restart", session_name="boards", session_restart_containers=["worker1"]).check()
    again = controller.launch("boards", session_roles=roles).check().text
    assert ("App shards: in ps1" in again, "App board" in again) == (True, False)
    controller.terminate("boards").check()


def test_the_example_reads_the_weights_of_both_servers(controller: Controller) -> None:
    controller.play("cluster_session", "-e", "@examples/roles/session.yml").check()
    logs = controller.play("session_logs", session_name="roles").check().text
    for worker in (1, 2):
        assert f"main1: worker{worker} has shard {worker} of 2 and weights 0.1 0.2" in logs
    controller.terminate("roles").check()
