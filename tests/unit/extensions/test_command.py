# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute``: what its words become, the inventory that it finds, and sessions with files on this machine."""

from __future__ import annotations

import json
import locale
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars
from cluster_compute import places
from cluster_compute.__main__ import main
from cluster_compute.verbs import read
from command_schema import checked
from typed_command import DOCUMENT, PLAYBOOKS, refusal, session, shown

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("home")


def variables(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables of a line, as Ansible reads them."""
    given = [value for option, value in pairwise(words) if option == "-e"]
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(extra_vars=tuple(given)))
    monkeypatch.setattr(load_extra_vars, "extra_vars", None, raising=False)
    loaded: dict[str, Any] = dict(load_extra_vars(DataLoader()))
    monkeypatch.setattr(load_extra_vars, "extra_vars", None)
    return loaded


@pytest.mark.parametrize(
    ("words", "playbook", "expected"),
    [
        (["ls"], "sessions.yml", {}),
        (["ls", "--all", "--ended"], "sessions.yml", {"session_owner": "all", "session_ended_too": "true"}),
        (
            ["scale", "train", "5"],
            "cluster_session.yml",
            {"session_name": "train", "session_cluster_size": "5", "session_scale": "true"},
        ),
        (["down", "train"], "terminate.yml", {"session_name": "train"}),
        (["down", "sweep-*", "--many"], "terminate.yml", {"session_name": "sweep-*", "session_many": "true"}),
        (["logs", "train"], "session_logs.yml", {"session_name": "train"}),
        (
            ["logs", "train", "main1", "sub2", "-f"],
            "session_logs.yml",
            {"session_name": "train", "session_logs_containers": ["main1", "sub2"], "session_logs_follow": "true"},
        ),
        (["why", "train"], "sessions.yml", {"session_name": "train", "session_ended_too": "true"}),
        (["down", "sweep-*"], "terminate.yml", {"session_name": "sweep-*"}),
        (
            ["show", "train"],
            "sessions.yml",
            {"session_name": "train", "session_ended_too": "true", "sessions_columns": "all"},
        ),
        (["show", "train", "--file"], "sessions.yml", {"session_name": "train", "sessions_format": "file"}),
        (["up", "--like", "train"], "cluster_session.yml", {"session_like": "train"}),
        (["restart", "train"], "session_restart.yml", {"session_name": "train"}),
        (
            ["restart", "train", "--on", "sub1,main1"],
            "session_restart.yml",
            {"session_name": "train", "session_restart_containers": ["sub1", "main1"]},
        ),
        (
            ["restart", "train", "--app", "board"],
            "session_restart.yml",
            {"session_name": "train", "session_restart_app": "board"},
        ),
        (["queue"], "sessions.yml", {}),
        (["doctor"], "check_agents.yml", {}),
        (["usage"], "usage.yml", {}),
        (["usage", "--month", "2026-11"], "usage.yml", {"usage_month": "2026-11"}),
        (["env"], "environments.yml", {}),
        (["env", "build", "lab", "pytorch"], "build_environments.yml", {"environments": ["lab", "pytorch"]}),
        (
            ["commit", "train", "team/train:2"],
            "session_commit.yml",
            {"session_name": "train", "session_commit_image": "team/train:2"},
        ),
        (
            ["commit", "train", "kept", "sub1", "--squash"],
            "session_commit.yml",
            {
                "session_name": "train",
                "session_commit_image": "kept",
                "session_commit_container": "sub1",
                "session_commit_squash": "true",
            },
        ),
        (["hosts", "provision"], "provision_agents.yml", {}),
        (
            ["exec", "train", "--", "ls", "-l"],
            "session_exec.yml",
            {"session_name": "train", "session_exec_command": "ls -l"},
        ),
        (
            ["exec", "train", "--on", "sub1,main1", "--", "echo $HOME; {{ x }} # \"'\x7f"],
            "session_exec.yml",
            {
                "session_name": "train",
                "session_exec_command": "echo $HOME; {{ x }} # \"'\x7f",
                "session_exec_containers": ["sub1", "main1"],
            },
        ),
        (
            ["cp", "my data", "train:in", "--on", "sub1"],
            "session_copy.yml",
            {
                "session_name": "train",
                "session_copy_direction": "to",
                "session_copy_source": "my data",
                "session_copy_target": "in",
                "session_copy_containers": ["sub1"],
            },
        ),
        (
            ["cp", "train:/data/x:1", "./a:b"],
            "session_copy.yml",
            {
                "session_name": "train",
                "session_copy_direction": "from",
                "session_copy_source": "/data/x:1",
                "session_copy_target": "./a:b",
            },
        ),
    ],
)
def test_a_verb_is_a_line_of_ansible(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    playbook: str,
    expected: dict[str, Any],
) -> None:
    [line] = shown(capsys, "-i", "hosts.ini", "-e", "session_state_dir=/x", *words)
    assert line[:3] == ["-i", "hosts.ini", playbook]
    assert variables(line, monkeypatch) == {**expected, "session_state_dir": "/x"}
    assert (PLAYBOOKS / playbook).exists()


def test_a_session_file_is_passed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train.yml", "other.yml"):
        Path(name).write_text("session_name: train\n")
    lines = shown(capsys, "-i", "h", "up", "train.yml", "other.yml", "--check", "--wait", "5")
    assert [line[3:5] for line in lines] == [["-e", "@train.yml"], ["-e", "@other.yml"]]
    assert lines[0][5:] == ["-e", "session_wait=5", "--check", "--diff"]
    assert shown(capsys, "-i", "h", "down", "train.yml") == [["-i", "h", "terminate.yml", "-e", "@train.yml"]]
    assert refusal(capsys, "-i", "h", "up", "absent.yml") == "absent.yml: there is no such session file"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"session_name: train\n  session_image: lab\n", "train.yml, line 2: mapping values are not allowed here"),
        (b"session_apps: [lab\n", "train.yml, line 2: expected ',' or ']', but got '<stream end>'"),
        (b"- session_name: train\n", "train.yml: there are no variables in it"),
        (b"", "train.yml: there are no variables in it"),
        (b"session_name: a\0", "train.yml: unacceptable character #x0000: special characters are not allowed"),
        (b"a: caf\xe9\n", "train.yml: 'utf-8' codec can't decode byte 0xe9 in position 6: invalid continuation byte"),
        (
            "a: 1\n".encode("utf-16"),
            "train.yml: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
def test_a_session_file_that_is_no_yaml_is_refused_in_one_message(
    content: bytes, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.yml").write_bytes(content)
    for verb in ("up", "down"):
        said = refusal(capsys, "-i", "h", verb, "train.yml")
        assert said.startswith(f"{found}; a session file is YAML in UTF-8, with a variable and its value on each line")


@pytest.mark.parametrize(
    "content", ['{\n\t"session_name": "train"}', "$ANSIBLE_VAULT;1.1;AES256\n3362\n", "a: !vault x\n"]
)
def test_what_ansible_reads_besides_plain_yaml_is_left_to_it(content: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.yml").write_text(content)
    assert shown(capsys, "-i", "h", "up", "train.yml")[0][3:] == ["-e", "@train.yml"]


def test_options_stand_before_or_after_the_verb_and_not_in_a_command() -> None:
    asked = read(
        ["-e", "a=1", "--json", "exec", "train", "-i", "h", "-v", "-K", "-e", "b=2", "--", "ls", "-v", "--json"]
    )
    assert (asked.variables, asked.inventory, asked.json, asked.become, asked.verbose) == (
        ["a=1", "b=2"],
        ["h"],
        True,
        True,
        1,
    )
    assert asked.command == ["ls", "-v", "--json"]
    assert not read(["exec", "train", "--", "ls", "--show"]).show


def test_a_copy_of_several_sources_is_a_line_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(capsys, "cp", "train:a", "train:b", ".")
    assert [variables(line, monkeypatch)["session_copy_source"] for line in lines] == ["a", "b"]
    for words in (["a", "b"], ["train:a", "train:b"], ["a", "train:b", "c"], ["train:a", "other:b", "."], ["train:a"]):
        assert refusal(capsys, "cp", *words).startswith("cp ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exec", "train", "--"], "exec needs a command after --"),
        (["exec", "../x", "--", "id"], "'../x' is no name of a session"),
        (["exec", "train", "--on", "-oProxyCommand=id", "--", "id"], None),
        (["exec", "train", "--on", "main1,x", "--", "id"], "'x' is no name of a container"),
        (["ssh", "train", "sub1", "sub2"], "ssh reaches one container"),
        (["logs", "train", "-f", "--json"], "logs -f has no end"),
        (["env", "build"], "env lists the environments"),
        (["commit", "train"], None),
        (["commit", "../x", "image"], "'../x' is no name of a session"),
        (["ls", "--", "x"], None),
        (["ls", "x"], None),
        (["up"], "up needs a session file, or --like NAME"),
        (["restart", "train", "--on", "sub1", "--app", "board"], "restart takes containers with --on, or an app"),
        (["nothing"], None),
        (["down", "--man", "x"], None),
    ],
)
def test_other_words_are_refused(capsys: pytest.CaptureFixture[str], words: list[str], message: str | None) -> None:
    if message is None:
        with pytest.raises(SystemExit) as ended:
            main(["-i", "h", *words])
        assert ended.value.code == 2
    else:
        assert refusal(capsys, "-i", "h", *words).startswith(message)


def test_the_inventory_is_never_this_machine_by_accident(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of precedence, from the last to the first."""
    refused = refusal(capsys, "ls")
    assert all(way in refused for way in ("-i FILE", "ANSIBLE_INVENTORY", "hosts.yml", "--local"))
    for name in ("hosts.yml", "cluster-compute.yml"):
        Path(name).touch()
        assert shown(capsys, "ls") == [["-i", name, "sessions.yml"]]
    monkeypatch.setenv("ANSIBLE_INVENTORY", "mine.ini")
    assert shown(capsys, "ls") == [["sessions.yml"]]
    assert shown(capsys, "ls", "--local") == [["-i", "inventory/local.yml", "sessions.yml"]]
    assert shown(capsys, "--local", "ls", "-i", "a", "-i", "b") == [["-i", "a", "-i", "b", "sessions.yml"]]


def test_a_verb_of_a_running_session_needs_no_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "exec", "train", "--", "id")[0][:2] == ["-i", "localhost,"]


def test_the_configuration_of_the_collection_is_used_unless_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places.configuration({}) == {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    assert places.configuration({"ANSIBLE_CONFIG": "mine.cfg"}) == {}
    Path("ansible.cfg").touch()
    assert places.configuration({}) == {}
    # Ansible ignores it then.
    Path().chmod(0o777)
    assert places.configuration({}) == {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}


@pytest.mark.parametrize(
    ("variable", "name", "added"),
    [
        ("LC_ALL", "C.UTF-8", {}),
        ("LC_ALL", "C", {"LC_ALL": "C.UTF-8"}),
        ("LC_ALL", "xx_XX.UTF-8", {"LC_ALL": "C.UTF-8"}),
        ("LANG", "C", {"LC_ALL": "C.UTF-8"}),
    ],
)
def test_ansible_gets_a_locale_with_utf_8(
    monkeypatch: pytest.MonkeyPatch, variable: str, name: str, added: dict[str, str]
) -> None:
    for other in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, name)
    try:
        assert places.configuration({"ANSIBLE_CONFIG": "mine.cfg"}) == added
    finally:
        locale.setlocale(locale.LC_ALL, "C.UTF-8")


def test_the_command_starts_without_ansible() -> None:
    """Its start would take as long as that of the playbook otherwise."""
    heavy = "print(sorted({'ansible', 'docker', 'jinja2', 'yaml'} & set(sys.modules)))"
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'extensions/command')!r}); import cluster_compute.__main__; {heavy}"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_file_that_cannot_be_read_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.d").mkdir()
    assert main(["-i", "hosts.d", "hosts", "add", "node1"]) == 1
    assert "hosts.d" in capsys.readouterr().err


# Sessions with files on this machine


def test_the_only_session_needs_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    assert "no session has files on this machine" in refusal(capsys, "-i", "h", "logs")
    session(home, "train")
    for words in (["logs"], ["logs", "sub1"], ["down"], ["exec", "--", "id"], ["cp", "a", ":b"], ["scale", "5"]):
        [line] = shown(capsys, "-i", "h", *words)
        assert variables(line, monkeypatch)["session_name"] == "train"
    for name in ("other", "job1"):  # the second has the form of a container's name
        [line] = shown(capsys, "-i", "h", "logs", name)
        assert variables(line, monkeypatch) == {"session_name": name}
    session(home, "main1")
    assert refusal(capsys, "-i", "h", "logs") == "logs needs the name of a session: one of main1, train"
    [line] = shown(capsys, "-i", "h", "logs", "main1")
    assert variables(line, monkeypatch) == {"session_name": "main1"}


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", "{}", '{"containers": [1], "apps": []}', '{"containers": null}', "\udc80", "[" * 100_000),
        *(json.dumps({name: DOCUMENT[name] for name in DOCUMENT if name != lost}) for lost in DOCUMENT),
        json.dumps({**DOCUMENT, "apps": [{"port": 1}]}),
    ],
)
def test_a_damaged_document_of_a_session_is_named(capsys: pytest.CaptureFixture[str], home: Path, content: str) -> None:
    file = session(home, "train") / "session.json"
    file.write_bytes(content.encode(errors="surrogateescape"))
    for words in (["open"], ["open", "train", "lab"], ["--show", "ssh"]):
        assert refusal(capsys, *words) == f"{file} is damaged: launch session train again, which writes it"
    assert main(["completion", "words", "--", "scale", "train", ""]) == 0, "scale needs no document"


def test_a_damaged_line_of_an_app_hides_no_other(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    (session(home, "train") / "apps").write_bytes(b"lab http://127.0.0.1:30001/lab?token=abc\n\xffop\n\n")
    assert main(["open", "train"]) == 0
    assert capsys.readouterr().out.splitlines() == ["lab http://127.0.0.1:30001/lab?token=abc", "open"]


def test_apps_are_listed_and_opened_by_a_tunnel(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    folder = session(home, "train")
    assert main(["open", "train"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab http://127.0.0.1:30001/lab?token=abc",
        "open http://192.0.2.1:30002/",
        "  If the page asks for a password, enter 0f1e",
    ]
    assert main(["open", "lab", "--no-wait"]) == 0
    assert capsys.readouterr().out == "lab http://127.0.0.1:30001/lab?token=abc\n"
    [line] = shown(capsys, "open", "train", "lab")
    assert line[-5:] == ["-F", str(folder / "ssh_config"), "-L", "30001:main1:8888", "main1"]
    assert main(["open", "train", "--json"]) == 0
    assert [app["name"] for app in checked("open", capsys.readouterr().out)["apps"]] == ["lab", "open"]
    assert refusal(capsys, "open", "train", "other") == "session train has no app other: it has lab, open"


def test_a_browser_opens_the_app_that_was_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    folder = session(home, "train", proxy=False)
    for words in (["open", "train"], ["open", "train", "open"], ["open", "lab", "--no-wait"]):
        assert main([*words, "--browser"]) == 0
    assert opened == ["http://192.0.2.1:30002/", "http://127.0.0.1:30001/lab?token=abc"]
    (folder / "session.json").write_text(json.dumps(DOCUMENT))
    capsys.readouterr()
    assert main(["open", "train", "--browser"]) == 0
    assert capsys.readouterr().out == "The session has no app.\n"


def test_an_app_of_this_machine_and_a_public_app_need_no_tunnel(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    session(home, "train", proxy=False)
    for app, url in (("lab", "http://127.0.0.1:30001/lab?token=abc"), ("open", "http://192.0.2.1:30002/")):
        assert main(["open", "train", app]) == 0
        assert capsys.readouterr().out.splitlines()[0] == f"{app} {url}"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_refused_before_anything_runs(closed: str) -> None:
    """Ansible ends with a traceback then."""
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", str(ROOT / "bin/cluster-compute"), "--local", "ls", "--show"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = "cluster-compute: a standard stream is closed: redirect it to /dev/null\n"
    assert (done.returncode, done.stdout + done.stderr) == (2, said)
