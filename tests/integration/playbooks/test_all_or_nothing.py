# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launch that fails reports one sentence, and changes no container, network, lease or artifact."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controller import ROOT, SMALL, Controller, Session, run
from ssh_lab import archive

REFERENCE = "cluster-compute/reference:1"
ODD = "cluster-compute-test-odd:1"
# The history of a session whose launch finds a port or a name taken.
AGAIN = ["PENDING", "SCHEDULED", "PREPARING", "PENDING", "SCHEDULED", "PREPARING", "RUNNING"]
# A callback of Ansible that creates a container just before the launch creates its own.
TAKE = """
import docker
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "aggregate", "take"

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.action != "cluster.compute.session":
            return
        from ansible_collections.cluster.compute.plugins.plugin_utils._session import launch
        create = launch.create_containers

        def taken(*given):
            launch.create_containers = create
            docker.APIClient(base_url=%r).create_container(%r, ["sleep", "600"], name=%r)
            create(*given)

        launch.create_containers = taken
"""

# The variables of a launch, and a pattern for its error.
FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "device": (
        {"session_gpus": 1, "agent_gpus": [{"id": "GPU-0"}, {"id": "GPU-1"}, {"id": "GPU-2"}]},
        r"not launched: (main1|sub[12]): .*localhost could not (create|start) it: .*device.*; .+\.$",
    ),
    "container that ends": (
        {"session_bootstrap": "[ $BACKENDAI_CLUSTER_HOST != sub2 ] || { echo no luck; exit 3; }"},
        r"not launched: sub2: .*ended with exit code 1 (?=.*no luck)(?=.*exit code 3)",
    ),
    "image with a file in the place of a folder": (
        {"session_image": ODD, "session_cpus": 0.01, "session_verify_timeout": 170},
        r"not launched: .*The image has a file at /etc/cluster-compute, where the session needs a folder for ",
    ),
    "image": (
        {"session_image": "nowhere/none:1"},
        r"not launched: session_image: 'nowhere/none:1': no agent has it, and the pull failed \(.*\); build it .*\.$",
    ),
}


@pytest.fixture
def stranger(controller: Controller) -> Iterator[dict[str, Any]]:
    """A container that belongs to no session, with the name of sub2 of the session."""
    client = controller.client
    name = f"{controller.owner}.taken.sub2"
    made = client.create_container(REFERENCE, ["sleep", "600"], name=name)
    try:
        client.start(made["Id"])
        yield client.inspect_container(made["Id"])
    finally:
        client.remove_container(made["Id"], force=True)


@pytest.fixture(scope="module")
def neighbour(controller: Controller) -> Session:
    """A running session, which failures of other sessions must not change."""
    return controller.launched("neighbour")


@pytest.fixture(scope="module")
def odd(controller: Controller) -> None:
    """An image with a file in the place of a folder of the session."""
    repository, _colon, tag = ODD.rpartition(":")
    controller.client.import_image_from_data(
        archive([("etc/cluster-compute", b"mine", 0o644)]), repository=repository, tag=tag
    )


@pytest.mark.usefixtures("neighbour", "odd")
@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_launch_leaves_nothing(controller: Controller, case: str) -> None:
    asked, sentence = FAILURES[case]
    before = controller.everything()
    failed = controller.launch("fails", session_cluster_size=3, **asked)
    print(failed.message)
    assert failed.code == 2
    assert re.search(sentence, failed.message)
    assert controller.everything() == before


def test_names_that_something_else_has_are_chosen_again(
    controller: Controller, stranger: dict[str, Any], tmp_path: Path
) -> None:
    """A container has the name of sub2 before the launch; another gets that of sub1 just before the launch creates it."""
    late = f"{controller.owner}.taken.sub1"
    (tmp_path / "take.py").write_text(TAKE % (controller.host, REFERENCE, late))
    environment = {**controller.environment, "ANSIBLE_CALLBACK_PLUGINS": str(tmp_path)}
    command = controller.command("cluster_session", session_name="taken", session_cluster_size=3, **SMALL)
    try:
        done = run(command, cwd=ROOT, env=environment).check()
        assert done.text.count("Session taken: RUNNING") == 1
        session, other = Session(controller, "taken"), Session(controller, "taken").id[:8]
        names = {hostname: one["Name"] for hostname, one in session.containers().items()}
        own = f"/{controller.owner}.taken."
        assert names == {"main1": f"{own}main1", "sub1": f"{own}sub1.{other}", "sub2": f"{own}sub2.{other}"}
        assert session.say("main1", "ssh sub1 hostname; ssh sub2 hostname").split() == ["sub1", "sub2"]
        [listed] = [one for one in controller.sessions() if one["name"] == "taken"]
        assert [entry["after"] for entry in listed["history"]] == AGAIN
        assert f"sub1: on localhost the name {late} is used by container " in listed["history"][3]["reason"]
        assert controller.launch("taken", session_cluster_size=3).check().changed == 0
        controller.terminate("taken").check()
        assert not controller.engine("taken")
        after = controller.client.inspect_container(stranger["Id"])
        assert (after["State"], after["Config"]) == (stranger["State"], stranger["Config"])
    finally:
        controller.client.remove_container(late, force=True)


@pytest.mark.usefixtures("neighbour")
def test_an_exhausted_port_range_is_refused(controller: Controller) -> None:
    """A range of a single port that is in use: the launch is refused before it creates or records anything."""
    before = controller.everything(), controller.rows()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        failed = controller.launch("portless", session_port_range=f"{port}-{port}")
    assert failed.code == 2
    assert failed.message == f"No port is free in {port}-{port}: end sessions, or enlarge session_port_range."
    assert (controller.everything(), controller.rows()) == before


def test_an_exhausted_address_pool_is_refused(controller: Controller, neighbour: Session) -> None:
    before = controller.everything(), controller.rows()
    pool = neighbour.document["network"]["subnet"]
    failed = controller.launch("homeless", session_network_pool=[pool])
    assert failed.code == 2
    assert (
        failed.message
        == f"No free /27 is left in the address pool {pool}: end sessions, or enlarge session_network_pool."
    )
    assert (controller.everything(), controller.rows()) == before


def test_the_history_records_the_failure(controller: Controller) -> None:
    rows = {row[0]: row for row in controller.rows()}
    _name, state, lease, reason = rows["fails"]
    assert (state, lease) == ("ERROR", 0)
    assert "nowhere/none:1" in reason


def test_a_port_that_something_else_has_taken_is_chosen_again(controller: Controller) -> None:
    """A socket that does not listen yet is in no report; the engine cannot publish its port."""
    first = controller.ports + 30
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        reserved = {"session_port_range": f"{first}-{first + 5}"}
        done = controller.launch("elsewhere", **reserved).check()
    session = Session(controller, "elsewhere")
    assert done.text.count("Session elsewhere: RUNNING") == 1
    [port] = session.containers()["main1"]["NetworkSettings"]["Ports"]["22/tcp"]
    assert int(port["HostPort"]) == first + 1
    assert session.say("main1", "hostname") == "main1"
    [listed] = [one for one in controller.sessions() if one["name"] == "elsewhere"]
    assert [entry["after"] for entry in listed["history"]] == AGAIN
    assert "address already in use" in listed["history"][3]["reason"]
    controller.terminate("elsewhere").check()
