# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts without Docker rights launch, list, enter and end sessions of their own, and of no other owner."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket

import logins
from front_end_lab import ASKED, FrontEnd
from ordinary_user import OrdinaryUser, second_user


def test_an_account_without_docker_has_sessions_of_its_own(front_end: FrontEnd) -> None:
    with second_user(front_end.service) as alice, second_user(front_end.service) as bob:
        front_end.let_in(alice, bob)
        try:
            _use(front_end, alice)
            _try_to_reach_those_of_others(front_end, alice, bob)
            _try_to_lift_limits(front_end, alice, bob)
        finally:
            ended = front_end.asked(alice, "end train")
        assert "Session train" in ended.check().text
        assert front_end.asked(alice, "enter train").code != 0


def _use(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    launched = front_end.asked(alice, "launch", "train", "lifetime=600", "cluster_size=2", *ASKED).check()
    assert "Session train: RUNNING" in launched.text
    entered = front_end.asked(alice, "enter train -- sh -c 'hostname; ssh sub1 id -u'").check()
    assert entered.text.split() == ["main1", str(alice.account.pw_uid)]
    assert "train" in front_end.asked(alice, "list").check().text
    assert "Session train: RUNNING" in front_end.asked(alice, "why train").check().text
    assert "session_lifetime: 600" in front_end.asked(alice, "show train --file").check().text
    by_sudo = front_end.asked_by_sudo(alice, "enter", "train", "--", "hostname")
    assert by_sudo.check().text.split()[-1] == "main1"


def _try_to_reach_those_of_others(front_end: FrontEnd, alice: OrdinaryUser, bob: OrdinaryUser) -> None:
    """No session of another owner is seen, read, entered or ended."""
    owner, service = alice.account.pw_name, front_end.service
    assert "train" not in front_end.asked(bob, "list").check().text
    for command in ("enter train", f"enter ../{owner}/train", "logs train", f"launch train owner={owner}"):
        refused = front_end.asked(bob, command)
        assert refused.code != 0
        assert owner in command or owner not in refused.text
    assert "There is no live session train" in front_end.asked(bob, "end train").check().text
    # The owner is the caller, whatever the caller writes.
    for words, environment in ((("enter", "train"), {"SUDO_USER": owner}), (("--owner", owner), {})):
        assert front_end.asked_by_sudo(bob, *words, **environment).code != 0
    # Neither login gives a shell, another program, another account or a tunnel.
    assert "invalid choice: 'id'" in front_end.asked(bob, "id").text
    assert front_end.asked(bob, options=["-W", f"127.0.0.1:{front_end.port}"]).code != 0
    for target in (["/bin/sh", "-c", "id"], ["/usr/bin/python3", "-c", "pass"]):
        words = ["-u", service.account.pw_name, *target]
        refused = logins.sudo(bob.account, service.folder / "sudoers", words, {})
        assert refused.code != 0
        assert "a password is required" in refused.text
    # The accounts have no access to the engine, and none to the files of the service account.
    assert front_end.run_as(bob, ["sh", "-c", "test -w /var/run/docker.sock"]).code != 0
    key = service.home / "sessions" / owner / "train/id_container"
    assert key.exists()
    for path in (service.home / "state/sessions.db", key):
        assert "Permission denied" in front_end.run_as(bob, ["cat", str(path)]).text


def _try_to_lift_limits(front_end: FrontEnd, alice: OrdinaryUser, bob: OrdinaryUser) -> None:
    """The limits of the site hold, and nothing that the caller writes lifts them or is evaluated."""
    lifts = json.dumps({"session_state_dir": "/tmp/mine", "session_owner": bob.account.pw_name})
    for words, sentence in (
        ([], "session_lifetime: 0: must be from 1 to 3600 seconds (policy of this site)"),
        (["lifetime=60", "cluster_size=3"], "permits " + alice.account.pw_name + " 2 at a time"),
        # As in docs/policy.md: ssh joins its words, so that quotes of the caller's shell are not enough.
        (
            ["lifetime=60", """'mounts=[{"source": "/", "target": "/h"}]'"""],
            f"must be a permitted directory: {front_end.pool}/ (policy of this site)",
        ),
        (["lifetime=60", "state_dir=/tmp/mine"], "must be VARIABLE=VALUE"),
        (["lifetime=60", "--extra-vars", f"'{lifts}'"], "must be VARIABLE=VALUE"),
        (["lifetime=60", f"'--extra-vars={lifts}'"], "must be VARIABLE=VALUE"),
        (["lifetime=60", "-e", "session_lifetime=9999"], "must be VARIABLE=VALUE"),
        (["lifetime=60", """'command={{ lookup("pipe", "id") }}'"""], "must not contain {{"),
    ):
        refused = front_end.asked(alice, "launch", "other", *words, *ASKED)
        assert refused.code != 0
        assert sentence in " ".join(refused.text.split()), refused.text
    refused = front_end.asked_by_sudo(alice, "launch", "other", "lifetime=60", "--extra-vars", lifts)
    assert "must be VARIABLE=VALUE" in refused.text
    waits = front_end.asked(alice, "launch", "other", "lifetime=60", *ASKED).check()
    reason = "has 2 of the 2 containers that the policy of this site permits, and it needs 1"
    assert reason in " ".join(waits.text.split())
    front_end.asked(alice, "end other").check()


WEB = {
    "name": "web",
    "port": 8000,
    "command": "echo the page of alice >index.html; exec python3 -m http.server $APP_PORT",
    "ready": "/",
}


def test_an_account_works_in_its_containers_and_another_does_not(front_end: FrontEnd) -> None:
    with second_user(front_end.service) as alice, second_user(front_end.service) as bob:
        front_end.let_in(alice, bob)
        asked = [f"apps={json.dumps([WEB])}", f"authorized_keys={(alice.home / 'id.pub').read_text()}"]
        words = ["launch", "train", "lifetime=600", "cluster_size=2", *map(shlex.quote, asked), *ASKED]
        try:
            launched = front_end.asked(alice, *words).check().text
            assert "Session train: RUNNING" in launched
            assert "When the session runs: enter train, exec train -- COMMAND, apps train" in launched
            _run_commands(front_end, alice)
            _copy_files(front_end, alice)
            _log_in_with_the_own_key(front_end, alice)
            _open_the_app(front_end, alice)
            _try_to_work_in_the_session_of_another(front_end, alice, bob)
        finally:
            front_end.asked(alice, "end train").check()


def _run_commands(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    assert front_end.asked(alice, "exec train --on sub1 -- hostname").check().text == "sub1\n"
    everywhere = front_end.asked(alice, "exec train --all --", "'echo rank $RANK'").check().text
    assert sorted(everywhere.splitlines()) == ["main1: rank 0", "sub1: rank 1"]
    assert front_end.asked(alice, "exec train --", "'exit 7'").code == 7
    failed = front_end.asked(alice, "exec train --on main1,sub1 --", """'test "$HOSTNAME" = main1 || exit 9'""")
    assert (failed.code, failed.text) == (9, "everywhere: failed in sub1 (9)\n")
    assert front_end.asked_by_sudo(alice, "exec", "train", "--", "sh", "-c", "id -u; exit 5").code == 5
    assert front_end.asked(alice, "exec train --on sub2 -- id").code == 2


def _copy_files(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    """The service account cannot enter the home of the caller, and need not."""
    front_end.script(
        alice, "mkdir -p data/deep back && echo one >data/deep/one && tar -c data | ssh controller copy-to train inbox"
    ).check()
    assert front_end.asked(alice, "exec train -- cat inbox/data/deep/one").check().text == "one\n"
    front_end.asked(alice, "exec train --on sub1 --", """'mkdir "a b" && echo two >"a b/two"'""").check()
    front_end.script(alice, """ssh controller copy-from train --on sub1 "'a b'" | tar -x -C back""").check()
    copied = alice.home / "back/a b/two"
    assert copied.read_text() == "two\n"
    assert copied.stat().st_uid == alice.account.pw_uid
    assert "one\n" in front_end.asked_by_sudo(alice, "copy-from", "train", "inbox/data/deep/one").check().text
    missing = front_end.asked(alice, "copy-from train /nowhere/x")
    assert missing.code != 0
    assert "/nowhere" in missing.text


def _log_in_with_the_own_key(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    without = front_end.script(alice, "ssh controller ssh-config train >.ssh/train.conf && ssh train.main1 hostname")
    assert "Host key verification failed" in without.text
    front_end.script(alice, "ssh controller known-hosts train >.ssh/train.known_hosts").check()
    for host in ("main1", "sub1"):
        assert front_end.script(alice, f"ssh train.{host} hostname").check().text == f"{host}\n"
    front_end.script(alice, "scp -q train.sub1:'a b/two' by_scp").check()
    assert (alice.home / "by_scp").read_text() == "two\n"
    assert "ProxyCommand sudo -u " in front_end.asked_by_sudo(alice, "ssh-config", "train").check().text
    assert "SSH-2.0-" in front_end.asked_by_sudo(alice, "connect", "train", "sub1").text


def _open_the_app(front_end: FrontEnd, alice: OrdinaryUser) -> None:
    shown = front_end.asked(alice, "apps train").check().text
    found = re.fullmatch(
        r"web http://127\.0\.0\.1:(\d+)(/\S*)\n  (ssh -N -o \S+) -L \1:main1:8000 train\.main1\n", shown
    )
    assert found, shown
    # This machine is the agent, too, where the port of the URL is taken.
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    tunnel = f"{found[3]} -f -M -S .ssh/tunnel -L {port}:main1:8000 train.main1"
    read = f"import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{port}{found[2]}').read())"
    page = f"/usr/bin/python3 -I -c {shlex.quote(read)}; ssh -S .ssh/tunnel -O exit train.main1"
    assert "the page of alice" in front_end.script(alice, f"{tunnel} && {page}").text


def _try_to_work_in_the_session_of_another(front_end: FrontEnd, alice: OrdinaryUser, bob: OrdinaryUser) -> None:
    """Neither the front end nor a key of bob leads into the session, also with the files of alice that are no secret."""
    commands = ("exec train -- id", "copy-to train .", "copy-from train inbox", "connect train", "apps train")
    for command in (*commands, "ssh-config train", "known-hosts train"):
        refused = front_end.asked(bob, command)
        assert refused.code == 2
        assert front_end.asked_by_sudo(bob, *command.split(), SUDO_USER=alice.account.pw_name).code == 2
        assert "you have no session train" in refused.text
        assert alice.account.pw_name not in refused.text
    for name in ("train.conf", "train.known_hosts"):
        shutil.copy(alice.home / ".ssh" / name, bob.home / ".ssh" / name)
        os.chown(bob.home / ".ssh" / name, bob.account.pw_uid, bob.account.pw_gid)
    assert "you have no session train" in front_end.script(bob, "ssh train.main1 id").text
    artifacts = front_end.service.home / "sessions" / alice.account.pw_name / "train"
    port = json.loads((artifacts / "session.json").read_text())["apps"][0]["port"]
    direct = f"ssh -p {port} -o HostKeyAlias=main1 -o UserKnownHostsFile=.ssh/train.known_hosts work@127.0.0.1 hostname"
    assert "Permission denied (publickey)" in front_end.script(bob, direct).text
    assert front_end.script(alice, direct).check().text == "main1\n"
