# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions end in order: programs save their state, and a lifetime ends a session without a controller."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from controller import Controller, Session
from servers import until

# Saves its state in the data folder; it takes a moment.
PROGRAM = "trap 'sleep 1; hostname >/data/$(hostname); exit 0' TERM; touch /data/ready-$(hostname); while :; do sleep 0.1; done"


def states(controller: Controller, name: str) -> list[str]:
    """The states of a session's containers in the engine."""
    names = [item.partition(" ")[2] for item in controller.engine(name) if item.startswith("container ")]
    return [controller.client.inspect_container(one.lstrip("/"))["State"]["Status"] for one in names]


def data_folder(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o777)
    return path


def test_every_container_saves_its_state_at_the_termination(controller: Controller, tmp_path: Path) -> None:
    data = data_folder(tmp_path / "data")
    mounts = [{"source": str(data), "target": "/data"}]
    session = controller.launched("saves", session_cluster_size=2, session_mounts=mounts, session_grace=60)
    (data / "program").write_text(PROGRAM + "\n")
    for host in ("main1", "sub1"):
        session.ssh(host, "setsid sh /data/program >/dev/null 2>&1 </dev/null &").check()
    until(lambda: len(list(data.glob("ready-*"))) == 2, "the programs run")
    controller.terminate("saves").check()
    assert {"main1", "sub1"} <= {path.name for path in data.iterdir()}
    assert controller.engine() == {}


def test_a_lifetime_is_raised_ends_the_session_and_the_next_run_removes_it(controller: Controller) -> None:
    first = controller.launch("brief", session_cluster_size=2, session_lifetime=9000).check()
    assert first.changed
    [listed] = controller.sessions(session_name="brief")
    assert (listed["lifetime"], listed["idle_timeout"]) == (9000, 0)
    assert 0 < listed["ends"] - time.time() <= 9000
    assert controller.launch("brief", session_cluster_size=2, session_lifetime=9000).check().changed == 0
    # The lifetime counts from the placement: this one is over a moment after it is written.
    limits = {"session_cluster_size": 2, "session_lifetime": 1}
    changed = controller.launch("brief", **limits).check()
    assert (changed.changed, "Session brief: RUNNING, limit changed: lifetime 1 s" in changed.text) == (1, True)
    until(lambda: states(controller, "brief") == ["exited"] * 2, "both containers have ended")
    table = controller.play("sessions", session_name="brief").check().text
    assert "RUNNING (ended)" in table
    assert "ended: its lifetime is over" in table
    controller.launched("next")
    [ended] = [row for row in controller.sessions(session_name="brief") if row["state"] == "TERMINATED"]
    assert ended["reason"] == "ended: its lifetime is over"
    assert controller.engine("brief") == {}
    # The controller has neither its secret nor its names for ssh any more.
    assert not (controller.artifacts / "brief").exists()
    assert "brief.main1" not in (controller.artifacts / "ssh_config").read_text()
    controller.terminate("next").check()


# Without a command and apps, what keeps the limits is the only lasting copy of PID 1.
STOP_LIMITS = """
: >/etc/cluster-compute/limits
for folder in /proc/[0-9]*; do
    if [ "$folder" != /proc/1 ] && cmp -s "$folder/cmdline" /proc/1/cmdline; then
        kill -STOP "${folder#/proc/}"
        echo stopped
    fi
done
"""


def test_a_lifetime_ends_a_session_whose_root_has_stopped_what_keeps_it(controller: Controller) -> None:
    limits = {"session_lifetime": 9000, "session_grace": 0}
    main = controller.launched("outlives", **limits).containers()["main1"]["Id"]
    program = ["/opt/cluster-compute/bin/busybox", "sh", "-c", STOP_LIMITS]
    attack = controller.client.exec_create(main, program, user="0")
    assert b"stopped" in controller.client.exec_start(attack["Id"])
    controller.launch("outlives", **{**limits, "session_lifetime": 1}).check()
    until(lambda: controller.sessions(session_name="outlives")[0]["overdue"], "the lifetime is over")
    assert states(controller, "outlives") == ["running"]
    ended = controller.play("schedule").check().text
    assert "Session outlives: TERMINATED (ended: its lifetime is over)" in ended
    [row] = controller.sessions(session_name="outlives")
    assert (row["state"], row["reason"]) == ("TERMINATED", "ended: its lifetime is over")
    assert controller.engine("outlives") == {}


def test_several_sessions_without_a_name_end_by_a_pattern_if_several_are_meant(controller: Controller) -> None:
    tiny = {"cpus": 0.2, "memory": "64m", "shm": "16m"}
    unnamed = {"session_count": 3, "session_preset": "tiny", "session_presets": {"tiny": tiny}}
    controller.play("cluster_session", **unnamed).check()
    names = [row[0] for row in controller.holding()]
    words = names[0].rpartition("-")[0]
    assert names == [f"{words}-{number}" for number in (1, 2, 3)]
    assert {container["HostConfig"]["Memory"] for container in Session(controller, names[0]).containers().values()} == {
        64 << 20
    }
    controller.launched("other")
    refused = controller.terminate(f"{words}-*")
    assert refused.code != 0
    matches = f"3 live sessions match {words}-*: {', '.join(names)}; add --many, or with the playbook -e session_many=true, to terminate them."
    assert matches in refused.text
    assert len(controller.holding()) == 4
    controller.play("terminate", session_name=f"{words}-*", session_many=True).check()
    assert [row[0] for row in controller.holding()] == ["other"]
    nothing = controller.terminate(f"{words}-*").check()
    assert f"0 live sessions match {words}-*: nothing to end" in nothing.text
    controller.terminate("other").check()


def test_a_session_that_lost_a_container_heals_if_it_asks_for_it(controller: Controller) -> None:
    wanted = {"session_cluster_size": 2, "session_on_failure": "restart"}
    session = controller.launched("heals", **wanted)
    address = session.addresses[1]
    controller.client.kill(session.containers()["sub1"]["Id"])
    [listed] = controller.sessions(session_name="heals")
    assert listed["degraded"] == ["sub1"]
    healed = controller.play("schedule").check()
    assert healed.changed
    assert session.say("main1", "ssh sub1 hostname -i").split() == [address]
    assert controller.sessions(session_name="heals")[0]["degraded"] == []
    assert controller.play("schedule").check().changed == 0
    assert controller.launch("heals", **wanted).check().changed == 0
    controller.terminate("heals").check()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_session_ends_although_the_disk_of_the_head_is_full(controller: Controller, tmp_path: Path) -> None:
    with small_disk(tmp_path / "state") as disk:
        store = {"session_state_dir": str(disk), "agent_state_dir": str(disk)}
        controller.launch("squeezed", **store).check()
        filler = disk / "filler"
        with suppress(OSError):
            filler.write_bytes(b"0" * (1 << 20))
        assert not shutil.disk_usage(disk).free
        [listed] = controller.sessions(session_name="squeezed", **store)
        assert listed["state"] == "RUNNING"
        ended = controller.play("terminate", session_name="squeezed", **store).check()
        assert "the end of the session is not recorded; free some space on the head" in " ".join(ended.text.split())
        assert controller.engine("squeezed") == {}
        filler.unlink()
        again = controller.play("terminate", session_name="squeezed", **store).check()
        assert "TERMINATED" in again.text
        [listed] = controller.sessions(session_name="squeezed", **store)
        assert listed["state"] == "TERMINATED"


def test_a_session_ends_by_its_labels_although_the_store_is_damaged(controller: Controller, tmp_path: Path) -> None:
    store = {"session_state_dir": str(tmp_path / "state"), "agent_state_dir": str(tmp_path / "state")}
    controller.launch("survives", **store).check()
    with locked(tmp_path / "locked") as other, ThreadPoolExecutor(1) as thread:
        held = {"session_state_dir": str(other.parent), "agent_state_dir": str(other.parent)}
        refused = thread.submit(controller.launch, "refused", **held)
        assert_ends_by_its_labels(controller, store, tmp_path / "state" / "sessions.db")
        done = refused.result()
    assert done.code == 2
    holder = f"database is locked; process {os.getpid()} ("
    assert holder in done.message
    assert done.message.endswith(") locks it; end it, or wait for it, and run this command again.")


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """The file of a store that this process locks."""
    folder.mkdir(mode=0o700)
    path = folder / "sessions.db"
    path.touch(mode=0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute("BEGIN EXCLUSIVE")
        yield path


def assert_ends_by_its_labels(controller: Controller, store: dict[str, str], path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)
    advice = f"file is not a database; the file is damaged: move {path} and"
    assert advice in controller.play("sessions", **store).message
    ended = controller.play("terminate", session_name="survives", **store).check()
    assert "Session survives: TERMINATED" in ended.text
    assert "The session ends by its labels; its end is not recorded." in " ".join(ended.text.split())
    assert controller.engine("survives") == {}
    path.rename(path.with_name("damaged.db"))
    assert controller.sessions(**store) == []
