# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ordinary users in the engine's group launch sessions: no root, no sudo, and one store for all of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from controller import LABEL, SMALL, Controller
from ordinary_user import OrdinaryUser, engine_group, ordinary_user, second_user


@pytest.fixture(scope="module")
def user(engine_host: str) -> Iterator[OrdinaryUser]:
    """A new user of this machine, with a copy of the checkout."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("this test needs root and useradd: it creates another user")
    if not engine_host.startswith("unix://"):
        pytest.skip("this test needs an engine of this machine: the other user reaches it by its socket")
    with ordinary_user() as made:
        yield made


@pytest.fixture(scope="module")
def controller(engine_host: str, user: OrdinaryUser) -> Iterator[Controller]:
    """The commands of the README, with files that the other user can read."""
    made = Controller(user.folder / "controller", engine_host)
    # Only what separates tests is set: artifacts and owner are the user's by default.
    names = ("session_state_dir", "session_network_pool", "session_port_range", "agent_cpus", "agent_memory")
    made.variables = {name: made.variables[name] for name in names}
    made.owner = user.account.pw_name
    made.common.write_text(json.dumps(made.variables))
    made.common.chmod(0o644)
    try:
        made.play("provision_agents", "--tags", "store", agent_state_dir=str(made.state)).check()
        yield made
    finally:
        made.clean()


def test_a_user_without_root_launches_uses_and_ends_a_session(controller: Controller, user: OrdinaryUser) -> None:
    group, folder = engine_group(controller), user.home / ".cluster-compute/plain"
    arguments = {"session_name": "plain", "session_cluster_size": 2, **SMALL}
    launched = user.play(group, controller, "cluster_session", **arguments).check()
    shown = launched.text.replace("~", str(user.home))
    assert f"Enter it: ssh -F {folder}/ssh_config main1" in shown, shown
    assert not (user.home / ".local/state").exists()
    assert states(controller, user) == {"plain": "RUNNING"}
    ssh = ["ssh", "-F", f"{folder}/ssh_config", "main1", "ssh sub1 hostname; id -u"]
    assert user.run(group, controller, ssh).check().text.split() == ["sub1", "1000"]
    assert user.play(group, controller, "cluster_session", **arguments).check().changed == 0
    user.play(group, controller, "terminate", session_name="plain").check()
    assert controller.engine() == {}
    assert not folder.exists()
    assert states(controller, user) == {"plain": "TERMINATED"}


def test_two_users_at_once_never_hold_the_same(controller: Controller, user: OrdinaryUser) -> None:
    """Each session pins half of the CPUs, so two of the six sessions fit, regardless of the user."""
    group = engine_group(controller)
    half = max(1, int(controller.client.info()["NCPU"]) // 2)
    room = {**SMALL, "session_cpus": half, "session_cpu_pinning": True, "agent_cpus": 64}
    apps = {"session_apps": [{"name": "web", "port": 80}]}
    with second_user(user) as other, ThreadPoolExecutor(6) as threads:
        both = (user, other)
        names = [(one, f"both-{number}") for number in range(3) for one in both]
        jobs = [
            threads.submit(one.play, group, controller, "cluster_session", session_name=name, **room, **apps)
            for one, name in names
        ]
        try:
            texts = [job.result().check().text for job in jobs]
            assert sum(": RUNNING" in text for text in texts) == 2, texts
            waiting = [text for text in texts if "is PENDING: " in text]
            assert len(waiting) == 4
            held = [
                controller.client.inspect_container(item["Id"]) for one in both for item in containers(controller, one)
            ]
            assert len({item["HostConfig"]["CpusetCpus"] for item in held}) == 2
            ports = [
                port["HostPort"]
                for item in held
                for ports in item["NetworkSettings"]["Ports"].values()
                for port in ports or ()
            ]
            assert len(set(ports)) == 4
            listed = other.play(group, controller, "sessions", session_owner="all").check().text
            assert all(one.account.pw_name in listed for one in both), "the queue of each is visible to the other"
            assert (
                sorted([*states(controller, user).values(), *states(controller, other).values()]).count("PENDING") == 4
            )
        finally:
            for one in both:
                ended = one.play(group, controller, "terminate", session_name="both-*", session_many=True)
        ended.check()
        assert [containers(controller, one) for one in both] == [[], []]


def containers(controller: Controller, user: OrdinaryUser) -> list[dict[str, Any]]:
    label = f"{LABEL}.owner={user.account.pw_name}"
    found: list[dict[str, Any]] = controller.client.containers(all=True, filters={"label": label})
    return found


def states(controller: Controller, user: OrdinaryUser) -> dict[str, str]:
    """The state of every session of the user in the store that all users share."""
    return {name: state for name, state, _lease, _reason in controller.rows(user.account.pw_name)}


def test_a_user_outside_of_the_group_gets_a_remedy(controller: Controller, user: OrdinaryUser) -> None:
    options = {"session_name": "denied", "session_provision": False}
    refused = user.play(user.own_group, controller, "cluster_session", **options, **SMALL)
    assert refused.code != 0, refused.text
    group = engine_group(controller)
    assert refused.message == (
        f"The session store in {controller.state} is shared by group {group}: add this user to that group, or become root."
    )


def test_a_user_who_cannot_become_root_reads_a_single_sentence_that_names_the_option(
    controller: Controller, user: OrdinaryUser
) -> None:
    refused = user.play(user.own_group, controller, "cluster_session", session_name="rootless", **SMALL)
    assert refused.code != 0
    text = " ".join(refused.text.split())
    name = user.account.pw_name
    assert f"localhost: {name} can neither use the Docker Engine nor become root to install or start it (" in text, text
    assert (
        "); pass the password for sudo with -K, add this user to the group docker, or allow the user to use sudo."
        in text
    )
    assert "Premature end of stream" not in text
    assert text.count("fatal: ") == 1
