# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Relays: small containers that publish ports of apps which the launch of a session did not publish.

A relay runs on the agent of ``main1``, on the network of the session, and passes connections on to ``main1``. It is in the
namespace of the processes of ``main1``, so the kernel ends it with ``main1``. It has the labels of the session, so every end
removes it, and is no member of the session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

from ..._shared import label
from ..._shared.codec import Json, digest
from ..._shared.constants import HOST, RELAY_ROLE, RUNTIME_PATH, SSH_PORT
from ..._shared.documents.plan import App
from ..._shared.documents.report import Relay
from ..._shared.documents.topology import address_of_app
from ..._shared.errors import ComputeError, EngineError, InputError, TakenError
from ..._shared.names import container_id, container_names
from .client import Engine
from .payloads import GPUS_SEEN, NO_GPU, places_of, runtime_mount
from .reports import booked_ports, container_entry, engine_name, is_ours, is_relay, published, relays_by_session

# The port at which a relay listens. Its user is not root.
_LISTEN = 7000
_NOBODY = "65534:65534"
_MEMORY, _PROCESSES = 32 << 20, 512
# Ports of the agent that are tried after the preferred one.
_TRIES = 20


@dataclass(frozen=True)
class Relays:
    """The relays of a session on the agent of ``main1``, whose entry in the engine's list is ``main``."""

    engine: Engine
    main: Json
    ports: Tuple[int, int]
    check: bool = False

    def published(self) -> List[Relay]:
        """The relays that run."""
        session = self.main["Labels"][label.SESSION]
        return relays_by_session(self.engine.containers(session)).get(session, [])

    def change(self, apps: Sequence[App], unwanted: Sequence[str]) -> bool:
        """Create the relays of these apps, unless they run, and remove others. Returns whether anything changes."""
        specs = {app.name: digest([app.port, app.preferred_port, app.public, self.main["Id"]]) for app in apps}
        going, staying = [], set()
        for relay in self._relays():
            name = relay["Labels"][label.RELAY]
            if name in specs and relay["Labels"].get(label.SPEC) == specs[name] and relay["State"] == "running":
                staying.add(name)
            elif name in specs or name in unwanted:
                going.append(relay)
        missing = [app for app in apps if app.name not in staying]
        if missing and self.main["HostConfig"]["NetworkMode"] == HOST:
            rule = "must be left out with session_network host: the app listens at its own port of the agent"
            raise InputError("session_apps_publish", missing[0].name, rule)
        if not self.check:
            for relay in going:
                self.engine.remove(relay["Id"], engine_name(relay))
            for app in missing:
                self._create(app, specs[app.name])
        return bool(going or missing)

    def _relays(self) -> List[Json]:
        listed = self.engine.containers(self.main["Labels"][label.SESSION])
        return [container for container in listed if is_relay(container)]

    def _create(self, app: App, spec: str) -> None:
        name, labels = self._identity(app, spec)
        for port in self._candidates(app):
            identity = self.engine.create(name, relay_body(self.main, app, port, labels), name)
            try:
                self.engine.start(identity, name)
                return
            except ComputeError as error:
                self.engine.remove(identity, name)
                if not isinstance(error, TakenError):
                    raise
        message = "App %s: no port from %d to %d of agent %s is free for its relay; set session_port_range."
        raise EngineError(message % (app.name, *self.ports, self.engine.agent), self.engine.agent)

    def _candidates(self, app: App) -> Iterator[int]:
        everyone = self.engine.containers(everyone=True)
        # At a port of a session on the network of this agent, perhaps nothing listens yet.
        booked = (booked_ports(listed["Labels"]) for listed in everyone if is_ours(listed))
        used = set().union(*map(published, everyone), *booked)
        first, last = self.ports
        free = [port for port in range(first, last + 1) if port not in used and port != app.preferred_port]
        yield from ([app.preferred_port] if app.preferred_port and app.preferred_port not in used else [])
        yield from free[:_TRIES]

    def _identity(self, app: App, spec: str) -> Tuple[str, Dict[str, str]]:
        """The name of a new relay, and its labels: those of the session, and of no member."""
        own = self.main["Labels"]
        taken = {relay["Labels"].get(label.INDEX) for relay in self._relays()}
        index = next(number for number in range(1, len(taken) + 2) if str(number) not in taken)
        shared = (label.SCHEMA, label.SESSION, label.LAUNCH)
        hostname = "%s%d" % (RELAY_ROLE, index)
        labels = {
            **{name: text for name, text in own.items() if name in shared or name.startswith(label.SESSION + ".")},
            label.CONTAINER: container_id(own[label.SESSION], hostname),
            label.ROLE: RELAY_ROLE,
            label.INDEX: str(index),
            label.RELAY: app.name,
            label.SPEC: spec,
            label.BATCH: "",
            label.PORTS: "",
        }
        return container_names(own[label.OWNER], own[label.NAME], hostname, own[label.SESSION])[0], labels


def relay_body(main: Json, app: App, port: int, labels: Dict[str, str]) -> Json:
    """The create request of a relay: the image of ``main1``, of which nothing runs, and the program of the SSH runtime."""
    volume = next(mount["Name"] for mount in main["Mounts"] if mount.get("Destination") == RUNTIME_PATH)
    entry = container_entry(main)
    program = RUNTIME_PATH + "/bin/busybox"
    listen = [program, "nc", "-ll", "-p", str(_LISTEN), "-e", program, "nc", entry.address, str(app.port)]
    # It is reached in the families in which SSH of main1 is.
    ssh = [str(one.get("IP", "")) for one in main.get("Ports") or () if one.get("PrivatePort") == SSH_PORT]
    places = places_of(address_of_app(app, max(ssh, key=lambda address: ":" in address, default="")), port)
    return {
        "Image": main["ImageID"],
        # A CUDA image would get all devices of an agent whose default runtime is that of NVIDIA.
        "Env": [f"{GPUS_SEEN}={NO_GPU}"],
        "User": _NOBODY,
        "Entrypoint": listen,
        "Cmd": [],
        "Labels": labels,
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "ExposedPorts": {"%d/tcp" % _LISTEN: {}},
        "HostConfig": {
            "NetworkMode": entry.network,
            "PidMode": "container:" + main["Id"],
            "PortBindings": {"%d/tcp" % _LISTEN: places},
            "Mounts": [runtime_mount(volume)],
            "RestartPolicy": {"Name": "no"},
            "Init": False,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": _MEMORY,
            "PidsLimit": _PROCESSES,
            "LogConfig": {"Type": "none"},
        },
        "NetworkingConfig": {"EndpointsConfig": {entry.network: {}}},
    }
