# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of sessions, the JSON document, the page and the logs; and sessions that terminate themselves."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from controller import ROOT, SMALL, Controller, Session, run, run_playbook

from ansible_collections.cluster.compute.plugins.plugin_utils._settings.playbook_settings import COLUMNS

IMAGE = "cluster-compute/reference:1"


@pytest.fixture(scope="module")
def shown(controller: Controller) -> Session:
    hello = "echo first from $BACKENDAI_CLUSTER_HOST; echo last from $BACKENDAI_CLUSTER_HOST"
    return controller.launched("shown", session_cluster_size=2, session_bootstrap=hello)


def test_the_table(controller: Controller, shown: Session) -> None:
    started = time.strftime("%m-%d %H:%M", time.localtime(shown.document["session"]["running"]))
    output = controller.play("sessions").check().text
    row = (
        rf"shown +{controller.owner} +RUNNING +10 +2 single-node +0.2 CPUs, 64m +{started} +every container is verified"
    )
    assert re.search(row, output), output
    own = rf"{controller.owner} +\d+ +\d+ +\d+ +[\d.]+ +\S+ +0 +[\d.]+ CPUs, \S+"
    assert re.search(rf"^ *{own}$", output, re.MULTILINE), output
    assert re.search(r"default +1 +[\d.]+ of 64, [\d.]+ own ", output), output
    every = controller.play("sessions", sessions_columns="all").check().text
    assert re.search(rf"0.2 CPUs, 64m +[\d.]+ CPUs, [\d.]+[mk] +{IMAGE} +{started} +- +- +localhost +none ", every), (
        every
    )
    nothing = controller.play("sessions", session_name="no-such").check().text
    assert "No session matches session_name no-such." in nothing


@pytest.mark.parametrize(
    ("playbook", "variable", "rule"),
    [
        ("sessions", "sessions_format", "must be one of: table, json, html, file"),
        (
            "sessions",
            "sessions_state",
            "must be running, finished or other; leave it empty for all that have not ended",
        ),
        ("sessions", "sessions_columns", "must be all, or a list of " + ", ".join(COLUMNS)),
        ("policy", "policy_format", "must be one of: table, json"),
        ("usage", "usage_format", "must be one of: table, csv, json"),
        ("usage", "usage_month", "must be a month of UTC, as in 2026-11"),
        ("check_agents", "check_format", "must be one of: table, json"),
    ],
)
def test_a_wrong_format_is_refused(controller: Controller, playbook: str, variable: str, rule: str) -> None:
    refused = controller.play(playbook, **{variable: "yaml"})
    assert (refused.code, refused.message) == (2, f"{variable}: 'yaml': {rule}.")


def test_a_playbook_of_the_checkout_works_from_any_directory(
    controller: Controller, shown: Session, tmp_path: Path
) -> None:
    environment = {name: value for name, value in controller.environment.items() if name != "ANSIBLE_CONFIG"}
    command = controller.command("sessions", "-i", str(ROOT / "inventory" / "local.yml"))
    command[1] = str(ROOT / command[1])
    assert "shown" in run(command, cwd=tmp_path, env=environment).check().text


def test_an_inventory_may_have_the_variables_of_a_playbook(controller: Controller, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text((ROOT / "inventory" / "local.yml").read_text())
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "agents.yml").write_text("policy_format: json\nusage_format: csv\n")
    assert '"owners":' in controller.play("policy", "-i", str(inventory)).check().text
    assert "month,kind,name" in controller.play("usage", "-i", str(inventory)).check().text
    (tmp_path / "group_vars" / "agents.yml").write_text("session_mount: []\n")
    refused = controller.play("policy", "-i", str(inventory))
    found = "session_mount (from the inventory, host localhost): unknown; did you mean session_mounts?"
    assert (refused.code, refused.message.startswith(found)) == (2, True)


def test_the_policy_counts_sessions_that_only_their_labels_show(
    controller: Controller, shown: Session, other_controller: Controller
) -> None:
    def containers() -> dict[str, int]:
        text = other_controller.play("policy", policy_format="json").check().text
        owners = json.loads(text[text.index("{\n") : text.rindex("}\n") + 1])["owners"]
        return {owner["name"]: owner["used"]["containers"] for owner in owners}

    other_controller.play("sessions").check()
    assert containers()[controller.owner] == len(shown.containers())


def test_the_json_document(controller: Controller, shown: Session) -> None:
    """The printed document equals the written file, except for Ansible's indentation."""
    path = controller.folder / "sessions.json"
    output = controller.play("sessions", sessions_format="json", sessions_file=str(path)).check().text
    document = json.loads(path.read_text())
    block = output[output.index("{\n") : output.rindex("}\n") + 1]
    assert json.loads(block) == document
    [row] = [session for session in document["sessions"] if session["name"] == "shown"]
    assert (row["id"], row["image"], row["gpus"], row["degraded"]) == (shown.id, IMAGE, 0, [])
    assert (row["kind"], row["folders"], row["apps"], row["time_left"]) == ("cluster", [], [], None)
    assert row["measured"]["memory"] == sum(one["measured"]["memory"] for one in row["containers"]) > 0
    assert controller.owner in [owner["owner"] for owner in document["owners"]]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_page_is_written_to_the_working_directory(controller: Controller, shown: Session, tmp_path: Path) -> None:
    variables = {"sessions_format": "html", "sessions_page": "page.html"}
    command = controller.command("sessions", **variables)
    command[1] = str(ROOT / command[1])
    done = run_playbook(command, {**controller.environment, "PWD": str(tmp_path)}, tmp_path).check()
    assert f"The page is in {tmp_path}/page.html." in done.text
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>shown</b>" in page
    assert re.search(r'title="sub1: running, [\d.]+ CPUs, [\d.]+[mk]"', page)
    assert not (ROOT / "playbooks/page.html").exists()


def test_the_environments_have_the_agents_with_their_images(controller: Controller, shown: Session) -> None:
    own = {
        "site": {"versions": {"9": "registry.example.org/site:9"}, "apps": ["terminal"], "description": "Of this site"}
    }
    output = controller.play("environments", session_environments=own).check().text
    assert re.search(r"reference +1 +- +[\d.]+[mg] +localhost +SSH", output), output
    assert re.search(r"site +9 +terminal +- +- +Of this site", output), output


def test_the_logs(controller: Controller, shown: Session) -> None:
    everything = controller.play("session_logs", session_name="shown").check().text
    for host in ("main1", "sub1"):
        assert f"{host}: first from {host}" in everything
        assert f"{host}: last from {host}" in everything
    some = {"session_logs_containers": ["sub1"], "session_logs_tail": 1}
    output = controller.play("session_logs", session_name="shown", **some).check().text
    assert "sub1: last from sub1" in output
    assert "first from" not in output
    assert "from main1" not in output


def test_logs_of_an_unknown_container_are_refused(controller: Controller, shown: Session) -> None:
    refused = controller.play("session_logs", session_name="shown", session_logs_containers=["sub1", "sub7"])
    assert refused.message == "session_logs_containers: 'sub7': session shown has no such container, only main1, sub1."


def test_a_termination_without_a_name_is_refused(controller: Controller, shown: Session) -> None:
    refused = controller.play("terminate")
    assert refused.code != 0
    assert "session_name: '': must be given, as in -e session_name=train" in refused.message
    assert controller.engine("shown") != {}


def test_the_logs_of_a_failed_launch_are_kept(controller: Controller) -> None:
    """The containers are removed; their logs are kept."""
    shut = "echo prepared; echo 'exec false' >~/.bashrc; echo 'exec false' >~/.profile"
    failed = controller.launch("shut", session_cluster_size=2, session_bootstrap=shut)
    assert "Session shut was not launched: " in failed.message
    assert controller.engine("shut") == {}
    output = controller.play("session_logs", session_name="shut").check().text
    assert "main1: prepared" in output
    assert "sub1: prepared" in output


def test_schedule_terminates_finished_sessions(controller: Controller) -> None:
    """They end by themselves; the next pass over the queue records and removes the sessions that request it, and no others."""
    got = controller.folder / "notifications"
    notify = {"session_notify": f"cat >>{got}"}
    # The launch of the next session may be what records the end of one.
    common = {**SMALL, "session_command": "exit 3", **notify}
    goes = controller.launched("goes", session_terminate_when_done=True, **common)
    fails = controller.launched("fails", session_on_failure="terminate", **common)
    controller.launched("stays", **common)
    until_ended(goes, fails)
    passed = controller.play("schedule", "-vvv", **notify).check()
    assert str(got) not in passed.text
    states = {row[0]: row[1] for row in controller.rows()}
    assert [states[name] for name in ("goes", "fails", "stays")] == ["TERMINATED", "TERMINATED", "RUNNING"]
    assert [controller.engine(name) == {} for name in ("goes", "fails", "stays")] == [True, True, False]
    _check_notifications(got)


def test_ended_sessions_are_in_lists_of_their_own(controller: Controller) -> None:
    controller.launch("waits", **{**SMALL, "session_cpus": 64}).check()
    controller.terminate("waits").check()
    path = controller.folder / "some.json"

    def names(state: str, **variables: Any) -> list[str]:
        controller.play("sessions", sessions_state=state, sessions_file=str(path), **variables).check()
        return sorted(session["name"] for session in json.loads(path.read_text())["sessions"])

    assert names("finished") == ["fails", "goes"]
    assert names("other") == ["shut", "waits"]
    assert names("running") == ["shown", "stays"]
    [newest] = names("finished", sessions_limit=1)
    assert newest in ("fails", "goes")
    shown = controller.play("sessions", sessions_state="other").check().text
    assert re.search(r"^ *shut +\S+ +ERROR", shown, re.MULTILINE), shown
    assert re.search(r"^ *waits +\S+ +CANCELLED", shown, re.MULTILINE), shown


def _check_notifications(path: Path) -> None:
    """They are sent in the background: the last one may arrive after the playbook has ended."""
    end = time.monotonic() + 60
    while len(path.read_text().splitlines()) < 5:
        assert time.monotonic() < end, path.read_text()
        time.sleep(0.2)
    sent = [json.loads(line) for line in path.read_text().splitlines()]
    events = [(one["event"], one["session"]["name"], one["session"]["state"]) for one in sent]
    assert events[0] == ("running", "goes", "RUNNING")
    assert sorted(events[1:]) == [
        ("ended", "fails", "TERMINATED"),
        ("ended", "goes", "TERMINATED"),
        ("running", "fails", "RUNNING"),
        ("running", "stays", "RUNNING"),
    ]


def until_ended(*sessions: Session) -> None:
    """Wait until no container of these sessions runs. A list would record their ends."""
    end = time.monotonic() + 120
    while any(one["State"]["Running"] for session in sessions for one in session.containers().values()):
        assert time.monotonic() < end, "the sessions do not end"
        time.sleep(0.5)


def test_each_of_several_sessions_terminates_under_its_own_name(controller: Controller) -> None:
    batch = {**SMALL, "session_command": "true", "session_wait_result": True, "session_terminate_when_done": True}
    done = controller.launch("each", session_count=2, **batch).check()
    assert "Session each-1: SUCCESS" in done.text
    assert "Session each-2: SUCCESS" in done.text
    assert [row[:2] for row in controller.rows() if row[0].startswith("each")] == [
        ("each-1", "TERMINATED"),
        ("each-2", "TERMINATED"),
    ]
    assert controller.engine("each-1") == controller.engine("each-2") == {}
