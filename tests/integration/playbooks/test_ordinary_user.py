# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary user in the engine's group launches a session: no root, no sudo, the state in the user's own folder."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import ROOT, SMALL, Controller, Done, run


@pytest.fixture(scope="module")
def user(engine_host: str) -> Iterator[pwd.struct_passwd]:
    """A new user of this machine."""
    if os.geteuid() != 0 or shutil.which("useradd") is None or not engine_host.startswith("unix://"):
        pytest.skip("only root can make a user to test as, for an engine of this machine")
    name = "cc-" + uuid.uuid4().hex[:8]
    home = Path(tempfile.mkdtemp(prefix="cluster-compute-home-"))
    subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), "--shell", "/bin/sh", name], check=True)
    try:
        found = pwd.getpwnam(name)
        os.chown(home, found.pw_uid, found.pw_gid)
        yield found
    finally:
        subprocess.run(["userdel", name], check=False)
        shutil.rmtree(home, ignore_errors=True)


def group_of(socket: Path) -> str:
    status = socket.stat()
    assert status.st_mode & stat.S_IWGRP, f"{socket} is for its owner alone"
    return grp.getgrgid(status.st_gid).gr_name


def as_user(user: pwd.struct_passwd, group: str, controller: Controller, command: list[str]) -> Done:
    """May read everything (checkout and Python may lie in somebody's home), and do nothing else that is root's."""
    become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", f"--groups={grp.getgrnam(group).gr_gid}"]
    become += [
        "--bounding-set=-all,+dac_read_search",
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=-all,+dac_read_search",
    ]
    environment = {**controller.environment, "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
    return run([*become, "--no-new-privs", *command], cwd=ROOT, env=environment)


def test_without_root(controller: Controller, user: pwd.struct_passwd) -> None:
    home = Path(user.pw_dir)
    group = group_of(Path(controller.host.removeprefix("unix://")))
    # Nothing is set but what keeps clear of others: state, artifacts and owner are the user's by themselves.
    names = ("session_network_pool", "session_port_range", "agent_cpus", "agent_memory")
    ground = {name: controller.variables[name] for name in names}
    controller.common.write_text("{}")
    controller.common.chmod(0o644)
    arguments = {"session_name": "plain", "session_cluster_size": 2, **SMALL, **ground}
    controller.owner = user.pw_name
    launched = as_user(user, group, controller, controller.command("cluster_session", **arguments)).check()
    assert f"Enter it: ssh -F {home}/.cluster-compute/plain/ssh_config main1" in launched.text.replace("~", str(home))
    assert (home / ".local/state/cluster-compute/sessions.db").stat().st_uid == user.pw_uid
    ssh = ["ssh", "-F", f"{home}/.cluster-compute/plain/ssh_config", "main1", "ssh sub1 hostname; id -u"]
    assert as_user(user, group, controller, ssh).check().text.split() == ["sub1", "1000"]
    assert as_user(user, group, controller, controller.command("cluster_session", **arguments)).check().changed == 0
    as_user(user, group, controller, controller.command("terminate", session_name="plain")).check()
    assert controller.engine() == {}
    assert not (home / ".cluster-compute/plain").exists()


def test_without_the_group(controller: Controller, user: pwd.struct_passwd) -> None:
    """Who may not use the engine is told so, in one sentence."""
    command = controller.command("cluster_session", session_name="denied", session_provision=False, **SMALL)
    refused = as_user(user, grp.getgrgid(user.pw_gid).gr_name, controller, command)
    assert refused.code == 0
    assert "Session denied is PENDING: no agent can hold it: localhost cannot be reached" in refused.text
    assert "add the user to group docker" in refused.text
