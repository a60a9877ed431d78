# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A private registry: with a login, by digest, and without a trace of the password."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from controller import Controller, Session
from engine_lab import IMAGE, make_image
from process_watch import watched
from registry_lab import Registry, registry

PASSWORD = "Kp7-sunder-velvet-42"
FORMS = (
    PASSWORD,
    base64.b64encode(PASSWORD.encode()).decode(),
    base64.b64encode(f"alice:{PASSWORD}".encode()).decode(),
)
NAME = "team/train:2"
# The image of the tests, which other tests may make again meanwhile.
HELD = "cluster-compute-test/held:1"


@pytest.fixture(scope="module")
def private(controller: Controller) -> Iterator[tuple[Registry, str]]:
    """A registry that holds an image of 2 MB, and the image's digest. The engine does not know it any more."""
    make_image(controller.client)
    controller.client.tag(IMAGE, *HELD.split(":"), force=True)
    with registry("alice", PASSWORD) as made:
        digest = made.hold(controller.client, HELD, NAME)
        try:
            yield made, digest
        finally:
            controller.clean()
            made.forget(controller.client, NAME)
            controller.client.remove_image(HELD)


def is_clean(text: str) -> bool:
    return not any(form in text for form in FORMS)


def test_without_a_login(controller: Controller, private: tuple[Registry, str]) -> None:
    made, _digest = private
    failed = controller.launch("nologin", session_image=f"{made.address}/{NAME}")
    assert failed.code == 2
    assert "no agent has it, and the pull failed" in failed.message
    assert "session_registry_username" in failed.message
    assert not controller.engine("nologin")


def other_image(client: Any, name: str) -> str:
    """The ID of an image that the engine has under a name of the registry, which has another image under that name."""
    container = client.create_container(HELD, "true")
    try:
        return str(client.commit(container, *name.rsplit(":", 1))["Id"])
    finally:
        client.remove_container(container)


def test_login_by_variables(controller: Controller, private: tuple[Registry, str]) -> None:
    made, _digest = private
    file = controller.folder / "login.json"
    login = {"session_registry_username": "alice", "session_registry_password": PASSWORD}
    file.write_text(json.dumps(login))
    refused = controller.launch("elsewhere", "-e", f"@{file}", session_image=f"{made.address}/{NAME}")
    assert "no agent has it, and the pull failed" in refused.message
    file.write_text(json.dumps({"session_registry": made.address, **login}))
    file.chmod(0o600)
    old = other_image(controller.client, f"{made.address}/{NAME}")
    asked = {"session_image": f"{made.address}/{NAME}", "session_pull": "always"}
    with watched() as watcher:
        done = controller.launch("variables", "-vvv", "-e", f"@{file}", **asked).check()
    assert f"Image {made.address}/{NAME}: pulled on localhost in" in " ".join(done.text.split())
    assert is_clean(done.text)
    assert is_clean(b"\n".join(watcher.seen).decode(errors="replace"))
    again = controller.launch("variables", "-e", f"@{file}", **asked).check()
    assert again.changed == 0
    container = Session(controller, "variables").containers()["main1"]
    assert container["Config"]["Image"] == f"{made.address}/{NAME}"
    assert container["Image"] == controller.client.inspect_image(HELD)["Id"] != old
    assert is_clean(json.dumps(container))
    controller.terminate("variables").check()
    made.forget(controller.client, NAME)
    controller.client.remove_image(old)


def test_login_of_the_controller_and_by_digest(controller: Controller, private: tuple[Registry, str]) -> None:
    made, digest = private
    reference = f"{made.address}/team/train@{digest}"
    login = {"auths": {made.address: {"auth": FORMS[2]}}}
    folder = controller.home / ".docker"
    folder.mkdir(mode=0o700)
    (folder / "config.json").write_text(json.dumps(login))
    done = controller.launch("digest", "-vvv", session_image=reference).check()
    assert f"Image {reference}: pulled on localhost in" in " ".join(done.text.split())
    assert is_clean(done.text)
    container = Session(controller, "digest").containers()["main1"]
    assert container["Config"]["Image"] == reference
    assert container["Image"] == controller.client.inspect_image(HELD)["Id"]
    refused = controller.launch("wrong", session_image=f"{made.address}/team/train@sha256:{'0' * 64}")
    assert "no agent has it, and the pull failed" in refused.message
