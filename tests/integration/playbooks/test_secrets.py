# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private keys and secrets never appear in output, labels, engine, store, logs or process list."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import threading
from contextlib import suppress
from pathlib import Path

from controller import Controller, Session
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PRIVATE = ("ssh_host_ed25519_key", "id_cluster")


class Watcher(threading.Thread):
    """Every command line and environment of every process, again and again, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[bytes] = set()
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    self.seen.add((path / "cmdline").read_bytes())
                with suppress(OSError):
                    self.seen.add((path / "environ").read_bytes())


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
    watcher = Watcher()
    watcher.start()
    try:
        launched = controller.launch("secret", "-vvv", "--diff", session_cluster_size=2).check()
        session = Session(controller, "secret")
        again = controller.launch("secret", "-vvv", "--diff", session_cluster_size=2).check()
        secrets, identity = keys_of(controller, session), session.id
        client = controller.client
        labelled = {"label": f"cluster.compute.session={identity}"}
        engine = [session.containers(), client.networks(filters=labelled), client.volumes(), client.info()]
        logs = [client.logs(one["Id"]) for one in session.containers().values()]
        public = [(session.folder / name).read_bytes() for name in ("session.json", "ssh_config", "known_hosts")]
        ended = controller.play("terminate", "-vvv", session_name="secret").check()
    finally:
        watcher.over.set()
        watcher.join()
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
        "processes": sorted(watcher.seen),
    }.items():
        text = b"\n".join(texts)
        assert not [secret for secret in secrets if secret in text], place
        assert b"PRIVATE KEY" not in text, place
