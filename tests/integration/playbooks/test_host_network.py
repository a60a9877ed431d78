# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session on the network of its one agent: planned ports, logins, apps, another session beside it, and its end."""

from __future__ import annotations

import json
import runpy
import shlex
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from controller import Controller, Session, run

# The first has a port of its own; the other wants one that is in use, and gets another.
APPS = [
    {"name": name, "port": port, "command": 'exec python3 -m http.server "$APP_PORT"', "ready": "/"}
    for name, port in (("free", 0), ("busy", 0))
]


@pytest.fixture(scope="module")
def busy() -> Iterator[int]:
    """A port at which another program of the machine listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.fixture(scope="module")
def desk(controller: Controller, busy: int) -> Session:
    apps = [{**APPS[0], "port": controller.ports + 30}, {**APPS[1], "port": busy}]
    return controller.launched("desk", session_network="host", session_apps=apps)


def ports(session: Session) -> dict[str, int]:
    return {app["name"]: app["port"] for app in session.document["apps"]}


def test_a_login_and_the_variables_of_the_network(desk: Session) -> None:
    address = desk.addresses[0]
    script = 'hostname; echo "$MASTER_PORT $TF_CONFIG"; ssh main1 echo in; ip -o -4 addr show "$GLOO_SOCKET_IFNAME"'
    name, values, again, interface = desk.say("main1", script).split("\n")
    assert (name, again) == ("main1", "in")
    master = int(values.split()[0])
    assert json.loads(values.partition(" ")[2])["cluster"] == {"worker": [f"main1:{master}"]}
    assert f" {address}/" in interface
    assert len({master, ports(desk)["ssh"], 12345, 22}) == 4
    container = desk.containers()["main1"]
    assert (container["HostConfig"]["NetworkMode"], container["HostConfig"]["PortBindings"]) == ("host", {})


def test_sshd_listens_only_where_it_is_needed(desk: Session) -> None:
    listening = [line.split()[1:4:2] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = "%04X" % ports(desk)["ssh"]
    found = {local.partition(":")[0] for local, state in listening if local.endswith(":" + port) and state == "0A"}
    assert found == {_kernel("127.0.0.1"), _kernel(desk.addresses[0])}


def test_the_front_end_leads_to_the_server_of_the_session(desk: Session, checkout: Path) -> None:
    """The server of the host itself, which has port 22, has no host key of the session."""
    front_end = runpy.run_path(str(checkout / "extensions/front_end/cluster_session.py"))
    asked = front_end["parsed"](["connect", "desk"])
    words = front_end["arguments"](asked, front_end["document_of"](desk.folder, "missing"))
    way = shlex.join(["ssh", "-F", desk.config, *words])
    known = f"-oUserKnownHostsFile={desk.folder}/known_hosts"
    target = ["-i", f"{desk.folder}/id_container", "-l", desk.document["session"]["user"]["name"], "main1", "hostname"]
    options = [f"-oProxyCommand={way}", known, "-oStrictHostKeyChecking=yes", "-oBatchMode=yes"]
    assert run(["ssh", "-F", "/dev/null", *options, *target]).check().text == "main1\n"


def _kernel(address: str) -> str:
    return socket.inet_aton(address)[::-1].hex().upper()


def test_an_app_whose_port_is_in_use_listens_at_another(desk: Session, controller: Controller, busy: int) -> None:
    found = ports(desk)
    assert found["free"] == controller.ports + 30
    assert controller.ports <= found["busy"] < controller.ports + 36
    for name in ("free", "busy"):
        with urlopen(f"http://127.0.0.1:{found[name]}/", timeout=10) as answer:
            assert answer.status == 200


def test_a_second_run_changes_nothing_and_a_repair_keeps_the_ports(
    desk: Session, controller: Controller, busy: int
) -> None:
    apps = [{**APPS[0], "port": controller.ports + 30}, {**APPS[1], "port": busy}]
    before = ports(desk)
    assert controller.launch("desk", session_network="host", session_apps=apps).check().changed == 0
    controller.client.kill(desk.containers()["main1"]["Id"])
    while desk.containers()["main1"]["State"]["Running"]:
        time.sleep(0.2)
    assert controller.launch("desk", session_network="host", session_apps=apps).check().changed
    assert desk.say("main1", "ssh main1 echo in") == "in"
    assert ports(desk) == before


def test_another_session_beside_it_has_other_ports(desk: Session, controller: Controller) -> None:
    other = controller.launched("other", session_network="host")
    own, others = (set(ports(session).values()) for session in (desk, other))
    masters = {session.say("main1", "echo $MASTER_PORT") for session in (desk, other)}
    assert not own & others
    assert len(masters) == 2
    assert not masters & set(map(str, own | others))


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        ({"session_read_only_root": True}, "session_read_only_root"),
        ({"session_on_lost": "relocate"}, "must with session_network host be keep or end"),
    ],
)
def test_what_cannot_be_is_refused(controller: Controller, variables: dict[str, object], rule: str) -> None:
    refused = controller.launch("never", session_network="host", **variables)
    assert refused.code
    assert rule in refused.message


def test_more_containers_than_agents_wait_for_another_agent(controller: Controller) -> None:
    waits = controller.launch("wide", "--check", session_network="host", session_cluster_size=2).check()
    shown = " ".join(waits.text.split())
    assert "no host can hold this as they are: session_network: host needs 2 agents, 1 is eligible" in shown


def test_a_check_shows_the_plan_and_the_end_leaves_nothing(controller: Controller) -> None:
    shown = controller.launch("shown", "--check", "--diff", session_network="host").check().text
    assert "(host)" in shown
    for name in ("desk", "other"):
        controller.terminate(name).check()
    assert controller.engine() == {}
