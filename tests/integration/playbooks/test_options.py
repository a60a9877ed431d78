# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that no other test of playbooks sets, each with its effect on a real session."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from app_pages import get
from controller import ROOT, Controller, Session, run

CATALOGUE = {
    "own": {
        "description": "an environment of this site",
        "versions": {"2": "cluster-compute/reference:1", "1": "nowhere/none:1"},
        "apps": [{"name": "files", "port": 8000, "command": "exec python3 -m http.server 8000", "ready": "/"}],
        "environment": {"SITE": "of the site", "BOTH": "of the site"},
        "command": "echo the command of the environment",
    }
}
# All addresses, of IPv6 too if this machine has any.
HAS_IPV6 = Path("/proc/net/if_inet6").exists() and "lo" in Path("/proc/net/if_inet6").read_text()
PUBLISHED = ["0.0.0.0", "::"] if HAS_IPV6 else ["0.0.0.0"]
OPTIONS = {
    "session_image": "own",
    "session_environments": CATALOGUE,
    "session_environment": {"BOTH": "of the user"},
    "session_apps": ["files"],
    "session_pids": 128,
    "session_log_size": "1m",
    "session_log_files": 2,
    "session_no_new_privileges": True,
    "session_priority": 20,
    "session_strategy": "spread",
    "session_pull": "never",
    "session_keep_days": 1,
    "agent_publish": PUBLISHED[-1],
}


@pytest.fixture(scope="module")
def session(controller: Controller) -> Session:
    return controller.launched("options", **OPTIONS)


def test_a_container_is_bounded_as_asked_for(session: Session) -> None:
    host = session.containers()["main1"]["HostConfig"]
    assert (host["PidsLimit"], host["SecurityOpt"]) == (128, ["no-new-privileges"])
    assert host["LogConfig"]["Config"] == {"max-size": str(1 << 20), "max-file": "2"}
    assert session.say("main1", "grep NoNewPrivs /proc/self/status").split()[-1] == "1"


def test_ssh_is_published_at_the_address_of_the_agent(session: Session) -> None:
    bindings = session.containers()["main1"]["HostConfig"]["PortBindings"]
    assert [one["HostIp"] for one in bindings["22/tcp"]] == PUBLISHED
    for address in ("127.0.0.1", "::1")[: len(PUBLISHED)]:
        with socket.create_connection((address, int(bindings["22/tcp"][0]["HostPort"])), 60) as connection:
            assert connection.recv(4) == b"SSH-"
    assert [one["HostIp"] for one in bindings["8000/tcp"]] == ["127.0.0.1"]


def test_an_environment_of_the_site_gives_image_variables_apps_and_command(session: Session) -> None:
    main = session.containers()["main1"]
    assert main["Config"]["Image"] == "cluster-compute/reference:1"
    assert session.say("main1", "echo $SITE, $BOTH") == "of the site, of the user"
    assert [app["name"] for app in session.document["apps"] if app["name"] != "ssh"] == ["files"]
    logs = session.controller.client.logs(main["Id"]).decode()
    assert "the command of the environment" in logs


def test_another_version_that_no_agent_has_is_not_pulled(controller: Controller) -> None:
    refused = controller.launch("absent", **{**OPTIONS, "session_image": "own:1"})
    assert refused.code != 0
    assert "nowhere/none:1" in refused.message
    assert "session_pull is never" in refused.message
    assert controller.engine("absent") == {}


def test_reserved_amounts_of_an_agent_are_no_room(controller: Controller, session: Session) -> None:
    """Of 64 CPUs and 64 GB, sessions get the rest."""
    reserved = {"agent_reserved_cpus": 63.5, "agent_reserved_memory": "63g", "session_cpus": 1}
    answer = controller.launch("large", **reserved)
    assert "needs 1 CPU" in answer.text
    controller.terminate("large").check()
    path = controller.folder / "list.json"
    reserved.pop("session_cpus")
    controller.play("sessions", sessions_file=str(path), **reserved).check()
    document = json.loads(path.read_text())
    assert document["agents"][0]["capacity"] == {"millicpus": 500, "memory": 1 << 30, "gpus": 0}
    assert [one["priority"] for one in document["sessions"] if one["name"] == "options"] == [20]


def test_the_store_is_kept_by_the_head_that_is_named(controller: Controller, session: Session, tmp_path: Path) -> None:
    """The head is no agent. Its Python notes each module that runs there."""
    calls, python = tmp_path / "calls", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >>{calls}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {
        "agents": {"hosts": {"localhost": local}},
        "others": {"hosts": {"keeper": {**local, "ansible_python_interpreter": str(python)}}},
    }
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps(inventory))
    controller.play("sessions", "-i", str(path)).check()
    assert not calls.exists()
    shown = controller.play("sessions", "-i", str(path), session_head="keeper").check().text
    assert "options" in shown
    assert calls.exists()


def test_logs_of_ended_sessions_are_kept_up_to_their_limit(controller: Controller, session: Session) -> None:
    kept = controller.state / session.id
    controller.terminate("options").check()
    [log, *_others] = kept.iterdir()
    log.write_bytes(bytes(17 << 20))
    controller.play("schedule", session_keep_logs="32m").check()
    assert kept.exists()
    controller.play("schedule", session_keep_logs="16m").check()
    assert not kept.exists()
    with closing(sqlite3.connect(controller.state / "sessions.db")) as store, store:
        store.execute("UPDATE session SET changed = changed - 2 * 86400")
    assert "options" in [row[0] for row in controller.rows()]
    controller.play("schedule", session_keep_days=1).check()
    assert controller.rows() == []


def test_a_job_template_launches_from_the_answers_of_its_form(controller: Controller, tmp_path: Path) -> None:
    """All answers are text. The artifacts of the job say how to open the apps."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "index.html").write_text("from the data folder")
    app = {"name": "files", "port": 8000, "command": "cd /data; exec python3 -m http.server 8000", "ready": "/"}
    answers = {
        "session_name": "form",
        "session_mounts": f"{folder}:/data:ro\n",
        "session_environment": "EPOCHS=3\nMODEL=a b=c",
        "session_apps": json.dumps({**app, "public": True}),
        "session_preset": "small",
        "session_cpus": "0.2",
        "session_memory": "",
        "session_resource_group": "",
        "session_count": "1",
        "session_lifetime": "3600",
    }
    command = controller.command("cluster_session", **answers)
    command[1] = "extensions/patterns/cluster_sessions/playbooks/launch.yml"
    shown = {"ANSIBLE_SHOW_CUSTOM_STATS": "1", "AWX_USER_NAME": ""}
    done = run(command, cwd=ROOT, env={**controller.environment, **shown}).check().text
    session = Session(controller, "form")
    assert session.say("main1", "echo $EPOCHS, $MODEL; cat /data/index.html").splitlines() == [
        "3, a b=c",
        "from the data folder",
    ]
    resources = session.containers()["main1"]["HostConfig"]
    assert (resources["NanoCpus"], resources["Memory"]) == (200_000_000, 2 << 30)
    found = re.search(r"cluster_session_apps\b.*\bform\b.*\bfiles (http://\S+?)[\"'\s]", done)
    assert found, done
    assert get(found.group(1)) == "from the data folder"
