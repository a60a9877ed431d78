# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dead and a removed container: the same command restores both and does not change the others."""

from __future__ import annotations

from typing import Any

import pytest
from app_pages import urls
from controller import Controller, Done, Session
from cryptography.hazmat.primitives import serialization

from ansible_collections.cluster.compute.plugins.module_utils._shared.names import container_names


def host_key(session: Session, host: str) -> str:
    """The key that the container's certificate is for; the certificate itself has a random part."""
    shown = session.say("main1", f"ssh {host} cat /etc/cluster-compute/ssh_host_ed25519_key-cert.pub")
    certificate = serialization.load_ssh_public_identity(shown.encode())
    assert isinstance(certificate, serialization.SSHCertificate)
    form = certificate.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return form.decode()


def identity(inspected: dict[str, Any]) -> tuple[Any, ...]:
    labels = inspected["Config"]["Labels"]
    [network] = inspected["NetworkSettings"]["Networks"].values()
    return (
        inspected["Name"],
        labels["cluster.compute.container"],
        network["IPAddress"],
        sorted(inspected["Config"]["Env"]),
    )


@pytest.fixture(scope="module")
def session(controller: Controller) -> Session:
    return controller.launched("mends", session_cluster_size=3)


def again(controller: Controller, *arguments: str) -> Done:
    """The same command."""
    return controller.launch("mends", *arguments, session_cluster_size=3)


def test_dead_and_removed(controller: Controller, session: Session) -> None:
    before, document = session.containers(), session.document
    keys = {host: host_key(session, host) for host in ("sub1", "sub2")}
    session.say("sub1", "echo kept >kept")
    controller.client.kill(before["sub1"]["Id"])
    controller.client.remove_container(before["sub2"]["Id"], force=True)
    listed = controller.play("sessions").check()
    assert "RUNNING (degraded)" in listed.text

    assert "RUNNING, sub1, sub2 would be brought back" in again(controller, "--check").check().text
    assert session.containers()["sub1"]["State"]["Running"] is False

    assert "Session mends: RUNNING, sub1, sub2 brought back" in again(controller).check().text
    after = session.containers()
    assert {host: identity(one) for host, one in after.items()} == {host: identity(one) for host, one in before.items()}
    assert {host: host_key(session, host) for host in keys} == keys
    assert after["main1"]["Id"] == before["main1"]["Id"]
    assert after["main1"]["State"]["StartedAt"] == before["main1"]["State"]["StartedAt"]
    assert session.document["containers"] == document["containers"]
    assert session.say("sub1", "cat kept") == "kept"
    assert session.say("main1", "ssh sub1 hostname; ssh sub2 hostname").split() == ["sub1", "sub2"]


def test_what_a_user_of_the_engine_has_changed_is_seen_and_brought_back(
    controller: Controller, session: Session
) -> None:
    """Away from the network, at another address, with another limit and name: the ports and the interface come back, too."""
    before, client = session.containers(), controller.client
    [network] = before["main1"]["NetworkSettings"]["Networks"]
    for host in ("main1", "sub1"):
        client.disconnect_container_from_network(before[host]["Id"], network, force=True)
    client.connect_container_to_network(before["sub1"]["Id"], network)
    client.update_container(before["sub2"]["Id"], cpu_shares=None, mem_limit="96m", memswap_limit="96m")
    client.rename(before["sub2"]["Id"], "renamed-by-a-user")
    [listed] = [one for one in controller.sessions() if one["name"] == "mends"]
    assert listed["degraded"] == ["main1", "sub1", "sub2"]
    faults = [one["fault"] for one in listed["containers"]]
    assert faults[0] == "is not on the network of the session"
    assert faults[1].startswith("has the address ")
    assert faults[2].startswith(f"has the name renamed-by-a-user in place of {before['sub2']['Name'][1:]}, 96m memory")
    assert "RUNNING, main1, sub1, sub2 brought back" in again(controller).check().text
    after = session.containers()
    assert {host: identity(one) for host, one in after.items()} == {host: identity(one) for host, one in before.items()}
    assert after["sub2"]["Name"] == before["sub2"]["Name"]
    assert after["sub2"]["HostConfig"]["Memory"] == before["sub2"]["HostConfig"]["Memory"]
    assert after["sub2"]["State"]["StartedAt"] == before["sub2"]["State"]["StartedAt"]
    assert session.say("main1", "ssh sub1 ssh sub2 ssh main1 ls /sys/class/net").split() == ["eth0", "lo"]


def paused(controller: Controller) -> tuple[str, str]:
    """State and reason of the session in the list, by columns and as a program reads them."""
    [listed] = [one for one in controller.sessions() if one["name"] == "mends"]
    shown = controller.play("sessions", session_name="mends").check().text
    assert "RUNNING (paused)" in shown
    assert "sub1 on localhost is paused" in shown
    assert listed["degraded"] == []
    return listed["state"], next(one["state"] for one in listed["containers"] if one["hostname"] == "sub1")


def test_a_pass_leaves_a_paused_container_alone_and_a_launch_lets_it_go_on(
    controller: Controller, session: Session
) -> None:
    before = session.containers()
    controller.client.pause(before["sub1"]["Id"])
    assert paused(controller) == ("RUNNING", "paused")
    variables = {"session_exec_command": "hostname", "session_exec_timeout": 8}
    done = controller.play("session_exec", session_name="mends", **variables)
    assert "sub1 (no end within 8 s)" in done.message
    for host in ("main1", "sub2"):
        assert f"{host}: {host}" in done.text
    assert controller.play("schedule").check().changed == 0
    held = session.containers()
    assert held["sub1"]["State"]["Paused"] is True
    assert {host: one["State"]["StartedAt"] for host, one in held.items()} == {
        host: one["State"]["StartedAt"] for host, one in before.items()
    }
    assert "RUNNING, sub1 would be brought back" in again(controller, "--check").check().text
    assert session.containers()["sub1"]["State"]["Paused"] is True
    assert "Session mends: RUNNING, sub1 brought back" in again(controller).check().text
    assert session.containers() == before
    assert session.say("main1", "ssh sub1 hostname") == "sub1"


def test_an_app_that_was_added_to_main1_stays_in_the_files_of_the_session(
    controller: Controller, session: Session
) -> None:
    board = {"name": "board", "port": 8100, "command": "exec python3 -m http.server 8100", "ready": "/"}
    controller.play("session_apps", session_name="mends", session_apps=[board]).check()
    entries, open_at = session.document["apps"], urls(session)["board"]
    assert "board" in [entry["name"] for entry in entries]
    for host in ("sub1", "main1"):
        controller.client.kill(session.containers()[host]["Id"])
        assert f"RUNNING, {host} brought back" in again(controller).check().text
        assert session.document["apps"] == entries
        assert urls(session)["board"] == open_at


def test_main_removed(controller: Controller, session: Session) -> None:
    """main1 gets the same port, so the same configuration of ssh works. An app that was added to it is gone."""
    before = session.containers()
    board = {"name": "board", "port": 8100, "command": "exec python3 -m http.server 8100", "ready": "/"}
    controller.play("session_apps", session_name="mends", session_apps=[board]).check()
    controller.client.remove_container(before["main1"]["Id"], force=True)
    again(controller).check()
    assert identity(session.containers()["main1"]) == identity(before["main1"])
    assert [entry["name"] for entry in session.document["apps"]] == ["ssh"]
    assert not (session.folder / "apps").exists() or urls(session) == {}
    assert session.say("main1", "ssh sub1 hostname") == "sub1"
    assert [row[1:3] for row in controller.rows()] == [("RUNNING", 0)]


def test_files_lost_on_the_controller_are_written_again(controller: Controller, session: Session) -> None:
    before, document = session.containers(), session.document
    for name in ("id_container", "known_hosts", "session.json", "ssh_config"):
        (session.folder / name).unlink()
    restored = again(controller).check()
    assert "Session mends: RUNNING, its files on this controller are written again" in restored.text
    assert session.containers() == before
    assert session.document["containers"] == document["containers"]
    assert session.say("sub1", "ssh sub2 hostname") == "sub2"


def test_files_lost_in_a_container_are_written_again(controller: Controller, session: Session) -> None:
    """The containers run, and nothing but a login shows that they cannot be used."""
    before, client = session.containers(), controller.client
    made = client.exec_create(before["sub1"]["Id"], ["rm", "/etc/cluster-compute/authorized_keys"], user="0:0")
    client.exec_start(made["Id"])
    assert "RUNNING, its files in main1, sub1 are written again" in again(controller).check().text
    assert session.say("main1", "ssh sub1 hostname") == "sub1"
    assert "RUNNING, nothing to do" in again(controller).check().text


def test_keys_lost_on_the_controller_are_named_and_never_replaced(controller: Controller, session: Session) -> None:
    """A launch cannot tell a folder that was lost from one that another controller has."""
    before = session.containers()
    kept = session.folder.rename(session.folder.with_name("kept"))
    same = again(controller).check()
    assert f"Session mends runs, but {session.folder} does not have its keys" in " ".join(same.text.split())
    controller.client.remove_container(before["sub2"]["Id"], force=True)
    failed = again(controller)
    assert failed.code == 2
    assert "with an identity that this controller does not have; repair it from the controller that" in failed.message
    assert not session.folder.exists(), "keys that fit no container would hide the reason from the next command"
    kept.rename(session.folder)
    assert "Session mends: RUNNING, sub2 brought back" in again(controller).check().text


def test_a_repair_that_fails_leaves_it_as_it_was(controller: Controller, session: Session) -> None:
    before = session.containers()
    controller.client.remove_container(before["sub2"]["Id"], force=True)
    strangers = [
        controller.client.create_container("cluster-compute/reference:1", ["sleep", "600"], name=name)
        for name in container_names(controller.owner, "mends", "sub2", session.id)
    ]
    try:
        failed = again(controller)
        assert failed.code == 2
        assert "Session mends was not repaired: sub2: on localhost the name" in failed.message
        assert session.say("main1", "ssh sub1 hostname") == "sub1"
        assert {host: one["State"]["StartedAt"] for host, one in session.containers().items()} == {
            host: before[host]["State"]["StartedAt"] for host in ("main1", "sub1")
        }
    finally:
        for stranger in strangers:
            controller.client.remove_container(stranger["Id"], force=True)
    again(controller).check()
    assert session.say("main1", "ssh sub2 hostname") == "sub2"


def test_a_lost_store_is_made_again_from_labels(controller: Controller, session: Session) -> None:
    before = session.containers()
    (controller.state / "sessions.db").rename(controller.folder / "lost.db")
    same = again(controller).check()
    assert same.changed == 0
    assert "Session mends: RUNNING, nothing to do" in same.text
    assert session.containers() == before


def test_a_store_lost_while_nothing_runs_is_made_again(controller: Controller, session: Session) -> None:
    """After a reboot without the store, the session can still be repaired and terminated."""
    for one in session.containers().values():
        controller.client.stop(one["Id"], timeout=0)
    (controller.state / "sessions.db").unlink()
    [listed] = [one for one in controller.sessions() if one["name"] == "mends"]
    assert (listed["state"], len(listed["degraded"])) == ("RUNNING", 3)
    again(controller).check()
    assert session.say("main1", "ssh sub2 hostname") == "sub2"


def test_a_session_with_a_paused_container_ends(controller: Controller, session: Session) -> None:
    controller.client.pause(session.containers()["sub1"]["Id"])
    controller.terminate("mends").check()
    assert controller.engine() == {}
    assert [row[1] for row in controller.rows()] == ["TERMINATED"]
