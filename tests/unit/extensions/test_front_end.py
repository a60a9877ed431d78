# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front end for accounts without Docker rights: what a caller may write, and what it becomes."""

from __future__ import annotations

import io
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cluster_compute.words import MisuseError

PROGRAM = Path(__file__).resolve().parents[3] / "extensions/front_end/cluster_session.py"


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (["list"], {"SUDO_USER": "alice"}, ("alice", ["list"])),
        (["--owner", "alice"], {"SSH_ORIGINAL_COMMAND": "end 'train'"}, ("alice", ["end", "train"])),
        (["--owner", "alice"], {}, ("alice", [])),
        # What a caller of sudo writes names no owner.
        (["--owner", "bob"], {"SUDO_USER": "alice"}, ("alice", ["--owner", "bob"])),
    ],
)
def test_the_owner_is_the_caller(
    front_end: ModuleType, arguments: list[str], environment: dict[str, str], expected: tuple[str, list[str]]
) -> None:
    assert front_end.caller(arguments, environment) == expected


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ([], {}),
        (["list"], {}),
        (["--owner", "alice", "list"], {}),
        (["--owner", "all"], {}),
        (["list"], {"SUDO_USER": "../bob"}),
        (["list"], {"SUDO_USER": "a.b"}),
        (["--owner", "alice"], {"SSH_ORIGINAL_COMMAND": "launch 'open"}),
    ],
)
def test_without_a_caller_nothing_is_done(
    front_end: ModuleType, arguments: list[str], environment: dict[str, str]
) -> None:
    with pytest.raises(MisuseError):
        front_end.caller(arguments, environment)


@pytest.mark.parametrize(
    "words",
    [
        ["--owner", "bob", "list"],
        ["shell"],
        ["end"],
        ["end", "../bob/train"],
        ["enter", "-oProxyCommand=id"],
        ["enter", "a/../b"],
        ["launch", "abc"],
        ["scale", "train"],
        ["scale", "train", "many"],
        ["scale", "../bob/train", "3"],
        ["scale", "train", "3", "session_owner=bob"],
        ["exec", "train", "id"],
        ["exec", "train", "--"],
        ["exec", "train", "--on", "-oProxyCommand=id", "--", "id"],
        ["exec", "train", "--on=main1,-oProxyCommand=id", "--", "id"],
        ["exec", "train", "--on", "main1,", "--", "id"],
        ["exec", "train", "--on", "sub1", "--all", "--", "id"],
        ["exec", "train", "-W", "x:1", "--", "id"],
        ["exec", "../bob/train", "--", "id"],
        ["copy-to", "train", "--on", "main1,sub1", "data"],
        ["copy-to", "train"],
        ["copy-to", "train", "one", "two"],
        ["copy-from", "train"],
        ["copy-from", "-F/tmp/x", "results"],
        ["connect", "train", "localhost"],
        ["connect", "train", "10.0.0.1:22"],
        ["connect", "train", "main1:2222"],
        ["connect", "train", "sub1", "sub2"],
        ["connect", "train", "-oProxyCommand=id"],
        ["apps", "../bob/train"],
        ["ssh-config", "train", "sub1"],
    ],
)
def test_other_commands_and_names_are_refused(front_end: ModuleType, words: list[str]) -> None:
    with pytest.raises((MisuseError, SystemExit)):
        front_end.parsed(words)


def test_the_program_is_isolated_from_its_caller(tmp_path: Path) -> None:
    """As docs/policy.md installs it: two directories side by side. A package of the caller with the same name is not imported."""
    for name in ("front_end", "command"):
        shutil.copytree(PROGRAM.parents[1] / name, tmp_path / "srv" / name)
    own = tmp_path / "caller" / "cluster_compute"
    own.mkdir(parents=True)
    for name in ("__init__.py", "words.py"):
        (own / name).write_text("raise SystemExit(9)\n")
    environment = {"SUDO_USER": "alice", "PYTHONPATH": str(own.parent)}
    program = tmp_path / "srv/front_end" / PROGRAM.name
    done = subprocess.run(
        [sys.executable, "-I", str(program), "enter", "../train"],
        cwd=own.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cluster-session: '../train' is no name of a session")


def test_a_command_for_main1_keeps_its_options(front_end: ModuleType) -> None:
    assert front_end.parsed(["enter", "train", "--", "ls", "-l"]).words == ["ls", "-l"]
    assert front_end.parsed(["enter", "train", "ls", "--", "x"]).words == ["ls", "--", "x"]


def test_a_caller_changes_the_size_of_an_own_session(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "front_end.json"
    config.write_text(json.dumps({"artifacts": str(tmp_path / "sessions")}))
    played: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(front_end, "CONFIG", config)
    monkeypatch.setattr(front_end, "play", lambda _config, name, variables: played.append((name, variables)) or 0)
    monkeypatch.setenv("SUDO_USER", "alice")
    assert front_end.main(["scale", "train", "5"]) == 0
    own = {"session_owner": "alice", "session_artifacts": str(tmp_path / "sessions/alice"), "session_provision": False}
    size = {"session_name": "train", "session_cluster_size": 5, "session_scale": True}
    assert played == [("cluster_session", {**own, **size})]


def document_of(*hosts: str) -> dict[str, Any]:
    """What ``session.json`` of a session with these containers has."""
    return {
        "session": {"user": {"name": "work"}},
        "network": {"driver": "bridge"},
        "containers": [{"hostname": host} for host in hosts],
        "hosts": list(hosts),
        "apps": [{"name": "ssh", "address": "127.0.0.1", "port": 30000}],
    }


BUSYBOX = "/opt/cluster-compute/bin/busybox"
ATTACHED = "/opt/cluster-compute/bin/attached; "
UNPACK = "%s mkdir -p %s && cd %s && exec %s tar -x -o -f -"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exec", "train", "--", "ls", "-l", "a b"], ["-T", "--", "main1", ATTACHED + "ls -l 'a b'"]),
        (["exec", "train", "--on", "sub1", "--", "echo $HOME; id"], ["-T", "--", "sub1", ATTACHED + "echo $HOME; id"]),
        (["exec", "train", "--", "x", "--", "--on"], ["-T", "--", "main1", ATTACHED + "x -- --on"]),
        (["enter", "train", "echo $HOME"], ["-T", "--", "main1", ATTACHED + "echo $HOME"]),
        (["connect", "train"], ["-W", "main1:22", "--", "main1"]),
        (["connect", "train", "sub1"], ["-W", "sub1:22", "--", "main1"]),
        (["copy-to", "train", "."], ["-T", "--", "main1", UNPACK % (BUSYBOX, "./.", "./.", BUSYBOX)]),
        (
            ["copy-to", "train", "--on", "sub1", "/data/a b"],
            ["-T", "--", "sub1", UNPACK % (BUSYBOX, "'/data/a b'", "'/data/a b'", BUSYBOX)],
        ),
        (
            ["copy-to", "train", "--", "-x;id"],
            ["-T", "--", "main1", UNPACK % (BUSYBOX, "'./-x;id'", "'./-x;id'", BUSYBOX)],
        ),
        (
            ["copy-from", "train", "out/my results/"],
            ["-T", "--", "main1", f"cd ./out && exec {BUSYBOX} tar -c -f - './my results'"],
        ),
        (
            ["copy-from", "train", "/data"],
            ["-T", "--", "main1", f"cd / && exec {BUSYBOX} tar -c -f - ./data"],
        ),
    ],
)
def test_no_word_of_the_caller_is_an_option_of_ssh(
    front_end: ModuleType, words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert front_end.arguments(front_end.parsed(words), document_of("main1", "sub1")) == expected


def test_a_connection_leads_to_the_port_of_the_session_on_the_network_of_the_hosts(front_end: ModuleType) -> None:
    """There, the server of the host itself has port 22."""
    document = {**document_of("main1", "sub1"), "network": {"driver": "host"}}
    document["apps"].insert(0, {"name": "lab", "port": 30001})
    for host in ("main1", "sub1"):
        words = front_end.arguments(front_end.parsed(["connect", "train", host]), document)
        assert words == ["-W", f"{host}:30000", "--", "main1"]


@pytest.mark.parametrize(
    ("where", "hosts"), [(["--all"], "main1,sub1,sub2"), (["--on", "sub2,main1,sub2"], "sub2,main1")]
)
def test_a_command_for_several_containers_runs_everywhere(front_end: ModuleType, where: list[str], hosts: str) -> None:
    words = front_end.arguments(
        front_end.parsed(["exec", "train", *where, "--", "a b"]), document_of("main1", "sub1", "sub2")
    )
    everywhere = "/opt/cluster-compute/bin/everywhere"
    assert words == ["-T", "--", "main1", f"env BACKENDAI_CLUSTER_HOSTS={hosts} {everywhere} 'a b'"]


@pytest.mark.parametrize("path", ["/", "..", "a/..", ".", "a/."])
def test_a_copy_needs_the_name_of_a_file_or_folder(front_end: ModuleType, path: str) -> None:
    with pytest.raises(MisuseError):
        front_end.arguments(front_end.parsed(["copy-from", "train", path]), document_of("main1"))


def folder_of_session(folder: Path) -> Path:
    folder.mkdir()
    apps = [
        {"name": "ssh", "address": "127.0.0.1", "port": 30000},
        {"name": "lab", "port": 30001, "tunnel": f"ssh -F {folder}/ssh_config -L 30001:main1:8888 main1"},
        {"name": "open", "port": 30002, "tunnel": f"ssh -F {folder}/ssh_config -L 30002:main1:80 main1"},
    ]
    (folder / "session.json").write_text(json.dumps({**document_of("main1", "sub1"), "apps": apps}))
    (folder / "apps").write_text("lab http://127.0.0.1:30001/lab?token=abc\nopen http://10.0.0.1:30002/ 0f1e\n")
    return folder


def test_another_container_or_another_session_is_refused(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of_session(tmp_path / "train")
    (folder_of_session(tmp_path / "lost") / "session.json").write_text("{")
    # It would take the place of the tests.
    monkeypatch.setattr(front_end, "ssh", lambda *_words: pytest.fail("ssh was called"))
    for words, message in (
        (["connect", "train", "sub2"], "session train has no container sub2: it has main1, sub1"),
        (["exec", "other", "--", "id"], "you have no session other"),
        (["enter", "lost"], f"{tmp_path}/lost/session.json is damaged: launch session lost again, which writes it"),
    ):
        asked = front_end.parsed(words)
        with pytest.raises(MisuseError, match=re.escape(message)):
            front_end.reach(tmp_path / asked.name, asked, {})


def test_apps_are_shown_with_the_way_to_them(front_end: ModuleType, tmp_path: Path) -> None:
    folder = folder_of_session(tmp_path / "train")
    document = front_end.document_of(folder, "missing")
    assert front_end.shown_apps(document).splitlines() == [
        "lab http://127.0.0.1:30001/lab?token=abc",
        "  ssh -N -o ExitOnForwardFailure=yes -L 30001:main1:8888 train.main1",
        "open http://10.0.0.1:30002/",
        "  If the page asks for a password, enter 0f1e",
    ]
    assert front_end.shown_apps({**document, "apps": []}) == "The session has no app."


@pytest.mark.parametrize(("sudo", "way"), [("alice", "sudo -u {} {} -I {}"), ("", "ssh -T cluster@head")])
def test_ssh_reads_the_configuration_that_is_printed(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sudo: str, way: str
) -> None:
    monkeypatch.setenv("SUDO_USER", sudo)
    found = front_end.way_here({"login": "cluster@head"})
    assert found == way.format(pwd.getpwuid(os.geteuid()).pw_name, sys.executable, sys.argv[0])
    file = tmp_path / "train.conf"
    file.write_text(front_end.client_config("train", ["main1", "sub1"], "work", found))
    shown = subprocess.run(["ssh", "-G", "-F", str(file), "train.sub1"], capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    for line in ("user work", "hostname sub1", "stricthostkeychecking true", f"proxycommand {found} connect train %h"):
        assert line in lines
    # Another session whose name begins in the same way keeps its own.
    other = subprocess.run(["ssh", "-G", "-F", str(file), "train.x.main1"], capture_output=True, text=True, check=True)
    assert "proxycommand" not in other.stdout


def test_a_caller_at_a_terminal_commands_no_ssh_of_the_service_account(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a newline, a tilde would begin a command of ssh: another forwarding, from the network of the controller."""
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execvpe", lambda _name, words, _own: started.append(words))
    monkeypatch.setattr(signal, "signal", lambda _number, _action: None)
    front_end.ssh(tmp_path, ["-t", "--", "main1"])
    assert started[0][:3] == ["ssh", "-F", str(tmp_path / "ssh_config")]
    (tmp_path / "ssh_config").write_text("Host *\n    ForwardAgent yes\n    EscapeChar ~\n    PermitLocalCommand yes\n")
    done = subprocess.run([*started[0][:1], "-G", *started[0][1:]], capture_output=True, text=True, check=True)
    effective = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    wanted = {"escapechar": "none", "batchmode": "yes", "clearallforwardings": "yes", "forwardagent": "no"}
    wanted.update(forwardx11="no", permitlocalcommand="no")
    assert {name: effective[name] for name in wanted} == wanted
