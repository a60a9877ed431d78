# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine answers about an object that it does not have."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.errors import APIError, NotFound

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine, LateError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import OtherEngineError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError

# The answer of Engine 26.1 as a manager of a Swarm whose leader has Engine 20.10, seen over three agents of several releases.
OLDER_LEADER = "rpc error: code = Unimplemented desc = unknown method %s for service docker.swarmkit.v1.Control"


def client_of(**requests: Any) -> SimpleNamespace:
    """A client of the SDK with these requests, whose engine has version 1.45 of the API."""
    ping = SimpleNamespace(headers={"Api-Version": "1.45"})
    asked = {
        "_url": lambda path, **_options: path,
        "_get": lambda _url: ping,
        "_raise_for_status": lambda _answer: None,
    }
    return SimpleNamespace(close=lambda: None, **asked, **requests)


def engine(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Engine:
    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise error

    client = client_of(inspect_volume=refuse, remove_volume=refuse)
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client)
    return Engine("unix:///nowhere", 5, "agent2")


def server_error(explanation: str) -> APIError:
    response = SimpleNamespace(status_code=500, reason="Internal Server Error", url="http://engine")
    return APIError("500 Server Error", response=response, explanation=explanation)


@pytest.mark.parametrize(
    "error",
    [NotFound("gone"), server_error(OLDER_LEADER % "ListVolumes"), server_error(OLDER_LEADER % "RemoveVolume")],
)
def test_a_volume_that_no_engine_has_is_absent(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = engine(monkeypatch, error)
    assert asked.volume("data") is None
    asked.remove_volume("data")


@pytest.mark.parametrize("sentence", ["no space left", OLDER_LEADER % "RemoveNode"])
def test_another_error_of_the_engine_is_one(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="The engine of agent2 could not inspect volume data: %s" % sentence[:13]):
        engine(monkeypatch, server_error(sentence)).volume("data")


def test_each_request_of_a_hasty_connection_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    client = client_of(info=lambda: asked.append(client.timeout) or {})
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client)
    patient = Engine("unix:///nowhere", 60, "agent2")
    hasty = patient.hasty(30)
    for one in (patient, hasty, patient, patient.hasty(90)):
        assert one.info() == EngineInfo()
    assert (asked, hasty.agent) == ([60, 30, 60, 60], "agent2")


def test_a_timeout_of_a_socket_is_late_before_python_3_10(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, the timeout of a socket is no TimeoutError, and an agent whose engine is busy would count as one that needs a repair."""

    class OldTimeoutError(OSError):
        pass

    def answer_late() -> Any:
        try:
            raise OldTimeoutError("timed out")
        except OSError as error:
            raise docker.errors.DockerException("Read timed out.") from error

    monkeypatch.setattr(socket, "timeout", OldTimeoutError)
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client_of(info=answer_late))
    with pytest.raises(
        LateError, match="The engine of agent2 does not answer at unix:///nowhere: timed out; check the load"
    ):
        Engine("unix:///nowhere", 5, "agent2").info()


@pytest.mark.parametrize(("labels", "looks"), [({}, 1), ({label.FOLDERS: '["/data"]'}, 2)])
def test_a_container_that_no_policy_bounds_is_looked_at_once(
    labels: dict[str, str], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file of a launch would take one more request."""
    asked = []

    def inspect_container(identity: str) -> dict[str, Any]:
        asked.append(identity)
        return {"Config": {"Labels": labels}, "State": {"Running": False}}

    client = client_of(inspect_container=inspect_container, put_archive=lambda *_arguments: True)
    monkeypatch.setattr(docker, "APIClient", lambda **_options: client)
    connected = Engine("unix:///nowhere", 5, "agent2")
    for _file in range(2):
        connected.put_archive("c1", "/etc", b"")
    assert asked == ["c1"] * looks


@pytest.mark.parametrize(("headers", "version"), [({"Api-Version": "1.41"}, "1.41"), ({}, "auto")])
def test_clients_have_the_version_that_the_engine_answers_with(
    headers: dict[str, str], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy before an engine may keep the header back: the SDK then asks the engine itself."""
    made: list[str] = []

    def client(**options: Any) -> Any:
        made.append(options["version"])
        found = client_of(info=dict)
        found._get = lambda _url: SimpleNamespace(headers=headers)
        return found

    monkeypatch.setattr(docker, "APIClient", client)
    Engine("unix:///nowhere", 5, "agent2").info()
    assert made == [docker.constants.DEFAULT_DOCKER_API_VERSION, version]


def test_a_container_has_no_label_of_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine adds the labels of an image that a creation does not name."""
    image = {text: "of the image" for name, text in vars(label).items() if name.isupper() and isinstance(text, str)}
    made: list[Json] = []

    def create(body: Json, _name: str) -> Json:
        made.append({**image, **body["Labels"]})
        return {"Id": "1"}

    monkeypatch.setattr(docker, "APIClient", lambda **_options: client_of(create_container_from_config=create))
    asked = Engine("unix:///nowhere", 5, "agent2")
    for labels in ({label.SESSION: "s", label.GRACE: "20"}, {}):
        asked.create("train", {"Image": "x", **({"Labels": labels} if labels else {})})
        kept = {name for name, text in made[-1].items() if text == "of the image"}
        # No container is judged by these: they are of volumes and images.
        assert kept == {label.PREFIX, label.IMAGE, label.ORIGIN, label.RUNTIME, label.EDITION}
        assert {name: text for name, text in made[-1].items() if text and name not in kept} == labels


def test_podman_is_refused_by_name_before_it_is_asked_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Podman 4.3 answers at the socket of Docker."""

    def client(**_options: Any) -> Any:
        found = client_of(info=lambda: pytest.fail("asked"))
        found._get = lambda _url: SimpleNamespace(headers={"Api-Version": "1.41", "Libpod-API-Version": "4.3.1"})
        return found

    monkeypatch.setattr(docker, "APIClient", client)
    with pytest.raises(OtherEngineError) as failure:
        Engine("unix:///var/run/docker.sock", 5, "agent2").info()
    said = failure.value.message
    assert said.startswith(
        "The engine of agent2 at unix:///var/run/docker.sock is Podman (API 4.3.1), which does not run sessions"
    )
    assert "disable podman.socket on that host" in said
    assert "or set agent_docker_host to the address of a Docker Engine." in said


def test_an_sdk_that_is_too_old_for_requests_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docker 5.0 with requests 2.32 or newer: https://github.com/docker/docker-py/issues/3256"""

    def client(**_options: Any) -> Any:
        raise docker.errors.DockerException(
            "Error while fetching server API version: Not supported URL scheme http+docker"
        )

    monkeypatch.setattr(docker, "APIClient", client)
    with pytest.raises(EngineError, match="pip install --upgrade docker there"):
        Engine("unix:///nowhere", 5, "agent2").info()
