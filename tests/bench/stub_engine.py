# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub engines: they answer the requests of a launch and of an end as Docker Engine does, and run nothing.

Each engine listens on a unix socket of its own. Together they are one Swarm, so an overlay network of one is known to all.
A start takes START seconds. main1 has an SSH server, which accepts every login and answers the proof for all others.
"""

from __future__ import annotations

import json
import re
import socketserver
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from stub_proof import ProofServer, host_key

START = 0.15  # seconds of a start
# The message of PID 1 that its files are there.
RECEIVED = b"cluster-compute: the files of the session have arrived\n"
VERSION = {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24"}
Json = dict[str, Any]


@dataclass
class Swarm:
    """What all engines know: the image, the volumes of the SSH runtime, its managers, and the overlay networks by their ID."""

    image: str
    runtime: dict[str, str]
    managers: list[str]
    networks: dict[str, Json] = field(default_factory=dict)
    cluster: str = field(default_factory=lambda: uuid.uuid4().hex)


class StubEngine:
    """The state of one engine, and its answers. ``machine`` is the architecture of its host, and of its image."""

    def __init__(self, name: str, swarm: Swarm) -> None:
        self.name = name
        self.swarm = swarm
        self.machine = "x86_64"
        self.containers: dict[str, Json] = {}
        self.servers: dict[str, ProofServer] = {}

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, object]:
        """The status and the document for a request."""
        for verb, pattern, handler in ROUTES:
            match = re.fullmatch(pattern, path) if verb == method else None
            if match:
                return handler(self, query, body, *match.groups())
        return 404, {"message": f"the stub does not know {method} {path}"}

    def info(self, _query: Json, _body: bytes) -> tuple[int, object]:
        is_manager = self.name in self.swarm.managers
        swarm = {
            "NodeID": self.name,
            "NodeAddr": "",
            "LocalNodeState": "active",
            "ControlAvailable": is_manager,
            "RemoteManagers": [{"NodeID": name} for name in self.swarm.managers],
            "Cluster": {"ID": self.swarm.cluster} if is_manager else None,
        }
        amounts = {"NCPU": 64, "MemTotal": 256 << 30, "ServerVersion": VERSION["Version"], "Architecture": self.machine}
        return 200, {"ID": self.name, "Name": self.name, "LoggingDriver": "json-file", "Swarm": swarm, **amounts}

    def image(self, _query: Json, _body: bytes, name: str) -> tuple[int, object]:
        if name != self.swarm.image:
            return 404, {"message": f"No such image: {name}"}
        digest, architecture = {"x86_64": ("0" * 64, "amd64"), "aarch64": ("1" * 64, "arm64")}[self.machine]
        layers = {"Type": "layers", "Layers": ["sha256:" + digest]}
        known = {"RepoTags": [self.swarm.image], "RepoDigests": [], "Architecture": architecture, "Os": "linux"}
        return 200, {"Id": "sha256:" + digest, "Config": {"Env": ["PATH=/usr/bin:/bin"]}, "RootFS": layers, **known}

    def volumes(self, query: Json, _body: bytes) -> tuple[int, object]:
        made = [{"Name": name, "CreatedAt": "2026-01-01T00:00:00Z"} for name in self.swarm.runtime]
        listed = [{**volume, "Labels": _labels(self.swarm.runtime[volume["Name"]])} for volume in made]
        return 200, {"Volumes": [volume for volume in listed if _matches(query, volume["Labels"])]}

    def networks(self, query: Json, _body: bytes) -> tuple[int, object]:
        return 200, [network for network in self.swarm.networks.values() if _matches(query, network["Labels"])]

    def create_network(self, _query: Json, body: bytes) -> tuple[int, object]:
        identity = uuid.uuid4().hex
        self.swarm.networks[identity] = {"Labels": {}, "Scope": "swarm", **json.loads(body), "Id": identity}
        return 201, {"Id": identity}

    def remove_network(self, _query: Json, _body: bytes, identity: str) -> tuple[int, object]:
        return (204, None) if self.swarm.networks.pop(identity, None) else (404, {"message": "no such network"})

    def listed(self, query: Json, _body: bytes) -> tuple[int, object]:
        return 200, [_listed(one) for one in self.containers.values() if _matches(query, one["Config"]["Labels"])]

    def create(self, query: Json, body: bytes) -> tuple[int, Json]:
        identity = uuid.uuid4().hex
        config = json.loads(body)
        state = {"Status": "created", "ExitCode": 0, "OOMKilled": False}
        known = {"Id": identity, "Name": "/" + query["name"], "Image": config["Image"], "State": state}
        self.containers[identity] = {**known, "Config": config, "HostConfig": config["HostConfig"]}
        return 201, {"Id": identity, "Warnings": []}

    def hold(self, name: str, body: bytes) -> None:
        """A container that runs already, with this create request."""
        _status, created = self.create({"name": name}, body)
        self.containers[created["Id"]]["State"]["Status"] = "running"

    def inspect(self, _query: Json, _body: bytes, identity: str) -> tuple[int, object]:
        found = self.containers.get(identity)
        return (200, found) if found else (404, {"message": "no such container"})

    def start(self, _query: Json, _body: bytes, identity: str) -> tuple[int, object]:
        time.sleep(START)
        self.containers[identity]["State"]["Status"] = "running"
        return 204, None

    def kill(self, _query: Json, _body: bytes, identity: str) -> tuple[int, object]:
        self.containers[identity]["State"]["Status"] = "exited"
        return 204, None

    def remove(self, _query: Json, _body: bytes, identity: str) -> tuple[int, object]:
        if identity in self.servers:
            self.servers.pop(identity).stop()
        return (204, None) if self.containers.pop(identity, None) else (404, {"message": "no such container"})

    def receive(self, identity: str, archive: bytes) -> None:
        """What PID 1 reads from its standard input: the files of the container, with its host key."""
        ports = self.containers[identity]["HostConfig"].get("PortBindings") or {}
        if "22/tcp" in ports:
            self.servers[identity] = ProofServer(int(ports["22/tcp"][0]["HostPort"]), host_key(archive))

    def nothing(self, _query: Json, _body: bytes, _identity: str) -> tuple[int, object]:
        """An image without files: nothing is where the launch looks."""
        return 404, {"message": "no such file"}

    def logs(self, _query: Json, _body: bytes, _identity: str) -> tuple[int, object]:
        return 200, None


Handler = Callable[..., tuple[int, object]]
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"/_ping", lambda _engine, _query, _body: (200, "OK")),
    ("GET", r"/version", lambda _engine, _query, _body: (200, VERSION)),
    ("GET", r"/info", StubEngine.info),
    ("GET", r"/images/(.+)/json", StubEngine.image),
    ("GET", r"/volumes", StubEngine.volumes),
    ("GET", r"/networks", StubEngine.networks),
    ("POST", r"/networks/create", StubEngine.create_network),
    ("DELETE", r"/networks/(.+)", StubEngine.remove_network),
    ("GET", r"/containers/json", StubEngine.listed),
    ("POST", r"/containers/create", StubEngine.create),
    ("GET", r"/containers/(.+)/json", StubEngine.inspect),
    ("GET", r"/containers/(.+)/logs", StubEngine.logs),
    ("POST", r"/containers/(.+)/start", StubEngine.start),
    ("POST", r"/containers/(.+)/(?:kill|stop)", StubEngine.kill),
    ("DELETE", r"/containers/(.+)", StubEngine.remove),
    ("GET", r"/containers/(.+)/archive", StubEngine.nothing),
    ("HEAD", r"/containers/(.+)/archive", StubEngine.nothing),
)


def _labels(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split("\n"))


def _matches(query: Json, labels: Json) -> bool:
    """Whether labels have what the filter of a list asks for."""
    for wanted in json.loads(query.get("filters") or "{}").get("label", []):
        name, given, value = wanted.partition("=")
        if name not in labels or (given and labels[name] != value):
            return False
    return True


def _listed(container: Json) -> Json:
    """A container as the engine lists it."""
    config, state = container["Config"], container["State"]["Status"]
    places = config["NetworkingConfig"]["EndpointsConfig"]
    shown = {"Id": container["Id"], "Names": [container["Name"]], "Image": config["Image"], "State": state}
    mounts = [{"Name": mount.get("Source", "")} for mount in config["HostConfig"].get("Mounts", [])]
    rest = {"Labels": config["Labels"], "Created": 0, "Ports": [], "Mounts": mounts}
    return {**shown, **rest, "NetworkSettings": {"Networks": places}}


class _Requests(BaseHTTPRequestHandler):
    """HTTP for an engine; the server has the engine as an attribute."""

    protocol_version = "HTTP/1.1"
    # One segment for a short answer: the client waits for it.
    wbufsize = -1

    def _handle(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        path = re.sub(r"^/v[\d.]+", "", urllib.parse.unquote(parts.path))
        query = dict(urllib.parse.parse_qsl(parts.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        engine: StubEngine = self.server.engine  # type: ignore[attr-defined]
        attached = re.fullmatch(r"/containers/(.+)/attach", path)
        if attached:
            self._attach(engine, attached[1])
            return
        status, document = engine.answer(self.command, path, query, body)
        data = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Api-Version", VERSION["ApiVersion"])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _attach(self, engine: StubEngine, identity: str) -> None:
        """The connection becomes the standard input of PID 1: the number of bytes on a line, and the bytes, which it confirms."""
        self.send_response(101)
        self.send_header("Content-Type", "application/vnd.docker.raw-stream")
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        size = int(self.rfile.readline() or 0)
        if size:
            engine.receive(identity, self.rfile.read(size))
            self.wfile.write(b"\x02\0\0\0" + len(RECEIVED).to_bytes(4, "big") + RECEIVED)

    # The names that http.server looks for.
    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815

    def address_string(self) -> str:
        return "engine"

    def log_message(self, *_arguments: object) -> None:
        return


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, engine: StubEngine) -> None:
        self.engine = engine
        super().__init__(str(path), _Requests)


class Engines:
    """Stub engines with their sockets in a folder; they exist as long as the block."""

    def __init__(self, folder: Path, names: list[str], swarm: Swarm) -> None:
        self.engines = {name: StubEngine(name, swarm) for name in names}
        self._servers = [_Server(folder / f"{name}.sock", engine) for name, engine in self.engines.items()]

    def __enter__(self) -> Engines:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
