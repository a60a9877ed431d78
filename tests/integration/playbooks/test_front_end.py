# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts without Docker rights launch, list, enter and end sessions of their own, and of no other owner."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from controller import SMALL, Controller, Done
from ordinary_user import OrdinaryUser, engine_group, ordinary_user, second_user

POLICY = {"default": {"containers": 2, "mounts": [], "volumes": "none", "lifetime": 3600, "priority": 10}}
ASKED = [f"{name.removeprefix('session_')}={value}" for name, value in SMALL.items()]


@dataclass(frozen=True)
class FrontEnd:
    """The program as a forced command of SSH starts it, as the service account."""

    service: OrdinaryUser
    controller: Controller
    group: str

    def asked(self, owner: OrdinaryUser, command: str) -> Done:
        program = str(self.service.folder / "checkout/extensions/front_end/cluster_session.py")
        python = [str(self.service.folder / "venv/bin/python"), "-I", program, "--owner", owner.account.pw_name]
        shell = ["sh", "-c", 'SSH_ORIGINAL_COMMAND=$1; export SSH_ORIGINAL_COMMAND; shift; exec "$@"', "sh", command]
        return self.service.run(self.group, self.controller, [*shell, *python])


@pytest.fixture(scope="module")
def front_end(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnd]:
    if os.geteuid() != 0 or shutil.which("useradd") is None or not engine_host.startswith("unix://"):
        pytest.skip("this test needs root, useradd and an engine of this machine: it creates other users")
    with ordinary_user() as service:
        made = Controller(service.folder / "controller", engine_host)
        own = service.home / "state"
        names = ("session_network_pool", "session_port_range", "agent_cpus", "agent_memory")
        common = {"session_state_dir": str(own), **{name: made.variables[name] for name in names}}
        try:
            _install(service, own, common)
            yield FrontEnd(service, made, engine_group(made))
        finally:
            made.clean()


def _install(service: OrdinaryUser, state: Path, common: dict[str, object]) -> None:
    state.mkdir(mode=0o700)
    os.chown(state, service.account.pw_uid, service.account.pw_gid)
    (state / "policy.json").write_text(json.dumps(POLICY))
    (state / "policy.json").chmod(0o644)
    (service.folder / "common.json").write_text(json.dumps(common))
    program = service.folder / "ansible-playbook"
    program.write_text(f'#!/bin/sh\nexec {service.folder}/venv/bin/python -m ansible playbook "$@"\n')
    program.chmod(0o755)
    config = {
        "playbooks": str(service.folder / "checkout/playbooks"),
        "ansible_playbook": str(program),
        "inventory": str(service.folder / "checkout/playbooks/inventory/local.yml"),
        "artifacts": str(service.home / "sessions"),
        "variables_files": str(service.folder / "common.json"),
        "environment": f"LD_LIBRARY_PATH={service.folder}/python/lib ANSIBLE_STDOUT_CALLBACK=default",
    }
    path = service.folder / "checkout/extensions/front_end/front_end.json"
    path.write_text(json.dumps(config))
    path.chmod(0o644)


def test_an_account_without_docker_has_sessions_of_its_own(front_end: FrontEnd) -> None:
    with second_user(front_end.service) as alice, second_user(front_end.service) as bob:
        try:
            _use(front_end, alice, bob)
        finally:
            ended = front_end.asked(alice, "end train")
        assert "Session train" in ended.check().text
        assert front_end.asked(alice, "enter train").code != 0


def _use(front_end: FrontEnd, alice: OrdinaryUser, bob: OrdinaryUser) -> None:
    launched = front_end.asked(alice, f"launch train lifetime=600 cluster_size=2 {' '.join(ASKED)}").check()
    assert "Session train: RUNNING" in launched.text
    entered = front_end.asked(alice, "enter train -- sh -c 'hostname; ssh sub1 id -u'").check()
    assert entered.text.split() == ["main1", str(alice.account.pw_uid)]
    assert "train" in front_end.asked(alice, "list").check().text

    # No session of another owner is seen, read, entered or ended.
    assert "train" not in front_end.asked(bob, "list").check().text
    for command in ("enter train", "logs train", "launch train owner=" + alice.account.pw_name):
        assert front_end.asked(bob, command).code != 0
    assert "There is no live session train" in front_end.asked(bob, "end train").check().text

    # The limits of the site hold, and nothing that the caller writes lifts them or is evaluated.
    for words, sentence in (
        ("", "session_lifetime: 0: must be from 1 to 3600 seconds (policy of this site)"),
        ("lifetime=60 cluster_size=3", "permits " + alice.account.pw_name + " 2 at a time"),
        (
            'lifetime=60 mounts=[{"source":"/","target":"/h"}]'.replace('"', '\\"'),
            "must be a permitted folder: there is none",
        ),
        ("lifetime=60 state_dir=/tmp/mine", "must be VARIABLE=VALUE"),
        ('lifetime=60 \'command={{ lookup("pipe", "id") }}\'', "must not contain {{"),
    ):
        refused = front_end.asked(alice, f"launch other {words} {' '.join(ASKED)}")
        assert refused.code != 0
        assert sentence in " ".join(refused.text.split()), refused.text
    waits = front_end.asked(alice, f"launch other lifetime=60 {' '.join(ASKED)}").check()
    assert "has 2 of the 2 containers that the policy of this site permits, and it needs 1" in " ".join(
        waits.text.split()
    )
    front_end.asked(alice, "end other").check()

    # The account itself has no access to the engine, and none to the files of the service account.
    own = [alice.own_group, front_end.controller]
    assert alice.run(*own, ["sh", "-c", "test -w /var/run/docker.sock"]).code != 0
    assert alice.run(*own, ["sh", "-c", f"cat {front_end.service.home}/state/sessions.db"]).code != 0
