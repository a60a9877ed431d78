# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several sessions at once: isolated from each other, each with its own apps and variables."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import docker
import pytest
from controller import Controller, Session
from docker.models.containers import Container

SHARES = {
    "SHARD": "<% rank %> of <% size %>",
    "WHO": "<% role %><% index %>",
    "NEXT": "<% hosts[(rank + 1) % size] %>",
    "MASTER_PORT": "23456",
    "BRACES": "{% raw %}{{ not for Ansible }}{% endraw %}",
}
PROBE = 'for at in {addresses}; do timeout 2 bash -c "</dev/tcp/${{at/:/\\/}}" 2>/dev/null && echo $at; done; true'


@pytest.fixture(scope="module")
def busy() -> Iterator[int]:
    """A port that is in use."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def pair(controller: Controller, busy: int) -> tuple[Session, Session]:
    """Two sessions from a single command."""
    apps = [
        {"name": "web", "port": 8000, "preferred_port": controller.ports + 30},
        {"name": "api", "port": 8001, "preferred_port": busy, "public": True},
    ]
    done = controller.launch(
        "pair", session_count=2, session_cluster_size=2, session_apps=apps, session_environment=SHARES
    ).check()
    for name in ("pair-1", "pair-2"):
        assert f"Session {name}: RUNNING" in done.text
    return Session(controller, "pair-1"), Session(controller, "pair-2")


def test_separate_subnets_and_ports(pair: tuple[Session, Session]) -> None:
    one, two = pair
    assert one.document["network"]["subnet"] != two.document["network"]["subnet"]
    assert one.id != two.id
    ports = [app["port"] for session in pair for app in session.document["apps"]]
    assert len(set(ports)) == len(ports) == 6


def test_out_of_reach_by_any_address(pair: tuple[Session, Session]) -> None:
    """A session reaches neither containers nor published ports of another session, by any address between them."""
    for mine, other in (pair, pair[::-1]):
        networks = [next(iter(one.containers().values()))["NetworkSettings"]["Networks"] for one in pair]
        gateways = [network["Gateway"] for one in networks for network in one.values()]
        ssh = other.document["apps"][0]["port"]
        targets = [f"{address}:{port}" for address in other.addresses for port in (22, 8000)]
        targets += [f"{gateway}:{ssh}" for gateway in gateways] + [f"127.0.0.1:{ssh}"]
        reached = [f"{mine.addresses[1]}:22", *targets]
        # Whenever the engine creates a bridge network, it removes the rule that keeps networks apart, and inserts it again:
        # EnsureJumpRule in https://github.com/moby/moby/blob/v20.10.24/vendor/github.com/docker/libnetwork/iptables/iptables.go
        for _time in range(3):
            reached = mine.say("main1", PROBE.format(addresses=" ".join(reached))).split()
        assert reached == [f"{mine.addresses[1]}:22"]
        assert mine.say("main1", "getent hosts sub1").split()[0] == mine.addresses[1]
        assert mine.ssh("main1", f"getent hosts {other.containers()['sub1']['Name'][1:]}").code != 0


def test_only_mains_publish(controller: Controller, pair: tuple[Session, Session]) -> None:
    for session in pair:
        listed = controller.client.containers(filters={"label": f"cluster.compute.session={session.id}"})
        published = {
            one["Names"][0].rpartition(".")[2]: [port for port in one["Ports"] if port.get("PublicPort")]
            for one in listed
        }
        assert published["sub1"] == []
        assert {port["PrivatePort"] for port in published["main1"]} == {22, 8000, 8001}


def test_apps(controller: Controller, pair: tuple[Session, Session], busy: int) -> None:
    one, two = ({app["name"]: app for app in session.document["apps"]} for session in pair)
    assert one["web"]["port"] == controller.ports + 30
    assert two["web"]["port"] in range(controller.ports, controller.ports + 30)
    assert one["api"]["port"] != busy
    bindings = pair[0].containers()["main1"]["HostConfig"]["PortBindings"]
    assert [bindings[port][0]["HostIp"] for port in ("8000/tcp", "8001/tcp")] == ["127.0.0.1", "0.0.0.0"]
    pair[0].say(
        "main1",
        "mkdir -p www && echo hello >www/index.html; cd www; nohup python3 -m http.server 8000 >/dev/null 2>&1 &",
    )
    assert _get(f"http://127.0.0.1:{one['web']['port']}/") == "hello\n"


@pytest.fixture(scope="module")
def another_host(controller: Controller) -> Iterator[Container]:
    """A container on a network of its own, with its own addresses. It reaches this machine by a route, as another host does."""
    engine = docker.DockerClient(base_url=controller.host, version="auto")
    labels = {"cluster.compute.session.owner": controller.owner}
    network = engine.networks.create(f"{controller.owner}-elsewhere", driver="bridge", labels=labels)
    made = engine.containers.run(
        "cluster-compute/reference:1", ["sleep", "600"], detach=True, network=network.name, labels=labels
    )
    try:
        yield made
    finally:
        made.remove(force=True)
        network.remove()
        engine.close()


def test_only_a_public_app_is_reached_from_another_host(pair: tuple[Session, Session], another_host: Container) -> None:
    session = pair[0]
    ports = {app["name"]: app["port"] for app in session.document["apps"]}
    session.say("main1", "cd www; nohup python3 -m http.server 8001 >/dev/null 2>&1 &")
    assert _get(f"http://127.0.0.1:{ports['api']}/") == "hello\n"
    another_host.reload()
    [gateway] = [one["Gateway"] for one in another_host.attrs["NetworkSettings"]["Networks"].values()]

    def fetched(port: int) -> str:
        script = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode(), end='')"
        done = another_host.exec_run(["python3", "-c", script, f"http://{gateway}:{port}/"])
        return str(done.output.decode()) if done.exit_code == 0 else ""

    assert fetched(ports["api"]) == "hello\n"
    assert fetched(ports["web"]) == ""


def _get(address: str) -> str:
    """The page, once the server is up."""
    end = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_variables_of_the_user(pair: tuple[Session, Session]) -> None:
    ask = "for host in main1 sub1; do ssh $host 'echo \"$SHARD|$WHO|$NEXT|$MASTER_PORT|$BRACES\"'; done"
    assert pair[1].say("main1", ask).splitlines() == [
        "0 of 2|main1|sub1|23456|{{ not for Ansible }}",
        "1 of 2|sub1|main1|23456|{{ not for Ansible }}",
    ]
    [given] = [line for line in pair[1].containers()["sub1"]["Config"]["Env"] if line.startswith("SHARD=")]
    assert given == "SHARD=1 of 2"
