# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private keys and secrets never appear in output, labels, engine, store, logs or process list."""

from __future__ import annotations

import base64
import io
import json
import secrets as random
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from controller import SMALL, Controller, Session
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from process_watch import watched
from runtime_lab import Folder
from servers import until

PRIVATE = ("ssh_host_ed25519_key", "id_cluster")


def needles(key: bytes) -> set[bytes]:
    """A private key's text, line by line, and its secret part in any form that text could hold it in."""
    lines = {line for line in key.splitlines() if len(line) > 40 and b"-----" not in line}
    loaded = serialization.load_ssh_private_key(key, password=None)
    assert isinstance(loaded, Ed25519PrivateKey)
    return lines | forms(loaded.private_bytes_raw())


def forms(secret: bytes) -> set[bytes]:
    """Hexadecimal, raw, and base64 at its three alignments, without the characters that its neighbours decide."""
    encoded = {base64.b64encode(b"\0" * shift + secret)[4 if shift else 0 : -4] for shift in range(3)}
    return {secret, secret.hex().encode()} | encoded


def keys_of(controller: Controller, session: Session) -> set[bytes]:
    found = needles((session.folder / "id_container").read_bytes())
    found |= forms(bytes.fromhex((session.folder / "identity").read_text().split()[0]))
    for inspected in session.containers().values():
        for name in PRIVATE:
            chunks, _facts = controller.client.get_archive(inspected["Id"], f"/etc/cluster-compute/{name}")
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                member = archive.extractfile(name)
                assert member is not None
                found |= needles(member.read())
    return found


def test_no_secret_anywhere(controller: Controller) -> None:
    with watched() as watcher:
        variables = {"session_name": "secret", **SMALL, "session_cluster_size": 2}
        launched = controller.program("cluster_session", "-vvv", "--diff", **variables).check()
        session = Session(controller, "secret")
        again = controller.program("cluster_session", "-vvv", "--diff", **variables).check()
        secrets, identity = keys_of(controller, session), session.id
        client = controller.client
        labelled = {"label": f"cluster.compute.session={identity}"}
        engine = [session.containers(), client.networks(filters=labelled), client.volumes(), client.info()]
        logs = [client.logs(one["Id"]) for one in session.containers().values()]
        public = [
            (session.folder / name).read_bytes() for name in ("session.json", "ssh_config", "known_hosts", "trace.json")
        ]
        ended = controller.program("terminate", "-vvv", session_name="secret").check()
    stored = [path.read_bytes() for path in controller.state.rglob("*") if path.is_file()]
    left = [path.read_bytes() for path in controller.home.rglob("*") if path.is_file()]
    said = [done.text.encode() for done in (launched, again, ended)]
    assert len(secrets) > 20
    assert any(b"cluster_session.yml" in one for one in watcher.seen)
    for place, texts in {
        "output": said,
        "engine": [json.dumps(engine).encode()],
        "logs": logs,
        "public files": public,
        "store": stored,
        "home": left,
        "processes": sorted(watcher.seen | watcher.environments),
    }.items():
        text = b"\n".join(texts)
        assert not [secret for secret in secrets if secret in text], place
        assert b"PRIVATE KEY" not in text, place


# In a file and in a variable; in a file alone.
TOKEN, KEY = ("%s-%s" % (name, random.token_hex(16)) for name in ("token", "key"))
HAVE = 'test -n "$MY_TOKEN" && test "$(cat /run/secrets/token)" = "$MY_TOKEN" && test -s /run/secrets/key'
SHOWN = "echo $MY_TOKEN; cat /run/secrets/key"


def as_secrets(tmp_path: Path) -> list[dict[str, str]]:
    (tmp_path / "key").write_text(KEY)
    return [
        {"name": "token", "value": TOKEN, "environment": "MY_TOKEN"},
        {"name": "key", "file": str(tmp_path / "key")},
    ]


def committed(client: Any, container: str) -> Iterator[bytes]:
    """All layers and the configuration of an image that is made from a container."""
    image = client.commit(container)["Id"]
    try:
        yield json.dumps([client.inspect_image(image), client.history(image)]).encode()
        yield b"".join(client.get_image(image))
    finally:
        client.remove_image(image)


def assert_every_program_has_them(session: Session) -> None:
    for host in ("main1", "sub1"):
        assert session.say(host, SHOWN).split() == [TOKEN, KEY]
        assert session.say(host, "ls -l /run/secrets").count("-r--------") == 2
        assert session.ssh(host, "touch /run/secrets/more").code != 0
        assert " /run/secrets tmpfs " in session.say(host, "cat /proc/mounts")
    assert session.say("main1", "ssh sub1 '%s'" % SHOWN).split() == [TOKEN, KEY]


def request_of(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """A file of variables, as Ansible Vault has them, and the other variables: a command line is no place for a secret."""
    given = {
        "session_cluster_size": 2,
        "session_secrets": as_secrets(tmp_path),
        "session_bootstrap": HAVE,
        "session_command": HAVE + " && echo they are here",
        "session_wait_result": True,
    }
    variables = tmp_path / "variables.json"
    variables.write_text(json.dumps(given))
    return f"@{variables}", {"session_name": "keys", "session_memory": "64m", "session_shm": "16m"}


def assert_nowhere(places: dict[str, list[bytes]]) -> None:
    needed = [form for value in (TOKEN, KEY) for form in forms(value.encode())]
    for place, texts in places.items():
        text = b"\n".join(texts)
        assert text, place
        assert not [secret for secret in needed if secret in text], place


def files_below(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def restarted(session: Session, container: str, seconds: int) -> None:
    """Restart a container as a user of Docker does, without its secrets: it waits so long for them, and longer the next time."""
    client = session.controller.client
    client.put_archive(container, "/etc/cluster-compute", Folder().add("secrets", f"{seconds}\n").bytes())
    client.restart(container, timeout=0)
    if not seconds:
        assert client.wait(container, timeout=60)["StatusCode"] == 82
        client.put_archive(container, "/etc/cluster-compute", Folder().add("secrets", "600\n").bytes())


def lists_as_degraded(controller: Controller, reason: str) -> bool:
    listed = controller.play("sessions").check().text
    return "RUNNING (degraded)" in listed and reason in " ".join(listed.split())


def test_the_secrets_of_a_session_are_in_its_memory_alone(controller: Controller, tmp_path: Path) -> None:
    client = controller.client
    session = Session(controller, "keys")
    variables, given = request_of(tmp_path)

    def launch(*options: str, play: Any = controller.play) -> Any:
        return play("cluster_session", *options, "-e", variables, **given).check()

    with watched() as watcher:
        said = [launch("-vvv", "--diff", play=controller.program)]
        assert_every_program_has_them(session)
        main, sub = (one["Id"] for one in session.containers().values())
        engine = [session.containers(), client.networks(), client.volumes(), client.diff(main), client.diff(sub)]
        layers = list(committed(client, main))
        for seconds, why in ((0, "ended: no secrets came after its start"), (600, "waits for its secrets")):
            restarted(session, sub, seconds)
            # On a busy machine, PID 1 comes to its wait after the first list.
            until(partial(lists_as_degraded, controller, f"sub1 on localhost {why}"), f"the list says {why}")
            if seconds:
                forgotten = controller.play("cluster_session", **given, session_cluster_size=2)
            said.append(launch("-vvv"))
            assert_every_program_has_them(session)
        assert launch().changed == 0
        logs = [client.logs(one) for one in (main, sub)]
        public = files_below(session.folder)
        said.append(controller.terminate("keys", "-vvv").check())
    assert "other settings" in forgotten.message
    assert b"they are here" in logs[0]
    assert any(b"cluster_session.yml" in one for one in watcher.seen)
    kept = {"store": files_below(controller.state) + files_below(controller.home), "session's files": public}
    output = {"output": [done.text.encode() for done in said], "logs": logs, "command lines": sorted(watcher.seen)}
    assert_nowhere({**kept, **output, "engine": [json.dumps(engine).encode()], "layers": layers})
