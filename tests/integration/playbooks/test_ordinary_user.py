# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary user in the engine's group launches a session: no root, no sudo, the state in the user's own folder."""

from __future__ import annotations

import grp
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import SMALL, Controller
from ordinary_user import OrdinaryUser, ordinary_user


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
    # Only what separates tests is set: state, artifacts and owner are the user's by default.
    names = ("session_network_pool", "session_port_range", "agent_cpus", "agent_memory")
    made.variables = {name: made.variables[name] for name in names}
    made.owner = user.account.pw_name
    made.common.write_text("{}")
    made.common.chmod(0o644)
    try:
        yield made
    finally:
        made.clean()


def engine_group(controller: Controller) -> str:
    """The group that may use the engine."""
    socket = Path(controller.host.removeprefix("unix://"))
    status = socket.stat()
    assert status.st_mode & stat.S_IWGRP, f"{socket} is for its owner alone"
    return grp.getgrgid(status.st_gid).gr_name


def test_a_user_without_root_launches_uses_and_ends_a_session(controller: Controller, user: OrdinaryUser) -> None:
    group, folder = engine_group(controller), user.home / ".cluster-compute/plain"
    arguments = {"session_name": "plain", "session_cluster_size": 2, **SMALL, **controller.variables}
    launched = user.play(group, controller, "cluster_session", **arguments).check()
    assert f"Enter it: ssh -F {folder}/ssh_config main1" in launched.text.replace("~", str(user.home))
    assert (user.home / ".local/state/cluster-compute/sessions.db").stat().st_uid == user.account.pw_uid
    ssh = ["ssh", "-F", f"{folder}/ssh_config", "main1", "ssh sub1 hostname; id -u"]
    assert user.run(group, controller, ssh).check().text.split() == ["sub1", "1000"]
    assert user.play(group, controller, "cluster_session", **arguments).check().changed == 0
    user.play(group, controller, "terminate", session_name="plain").check()
    assert controller.engine() == {}
    assert not folder.exists()


def test_a_user_outside_of_the_group_gets_a_remedy(controller: Controller, user: OrdinaryUser) -> None:
    options = {"session_name": "denied", "session_provision": False}
    refused = user.play(user.own_group, controller, "cluster_session", **options, **SMALL)
    assert refused.code != 0, refused.text
    assert "Session denied cannot be launched: no agent can hold it: localhost cannot be reached" in refused.text
    assert "add the user to group docker" in refused.text


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
