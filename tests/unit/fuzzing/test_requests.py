# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a launch accepts, every later reader accepts: the store, the check of a plan, the labels of containers, a session file."""

from __future__ import annotations

import json
from typing import Any

from hostile import TEXTS, Choices, fuzzed
from samples import plan

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.label_rules import invalid_labels
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.allocation import wanted_ports
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_validation import checked_request
from ansible_collections.cluster.compute.plugins.module_utils._shared.units import parse_port_range
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.request_export import variables_of

ODD = (*TEXTS, "\u2028", "\x85", "\u200e", "\xa0", "\ufeff", "\t", "\n", "\x1b[31m", "\U0001f600", "x" * 300)
AMOUNTS = ("6m", "1.5GiB", "16g", " 2 G", "1024t", "1048576t", "999999999t", 1 << 30, 1 << 60, (1 << 60) + 1)
# Values that a launch accepts. Texts among them get odd characters.
VALUES: tuple[tuple[str, Any], ...] = (
    ("mounts", [{"source": "/srv/data", "target": "/data"}]),
    ("mounts", [{"source": "v1", "target": "/v1", "local": "yes"}, {"source": "/a", "target": "/b/", "mode": "ro"}]),
    ("mounts", [{"source": "nas:/x", "target": "/x", "type": "nfs", "options": {"o": "soft"}}]),
    ("apps", [{"name": "lab", "port": "8888", "command": "lab", "ready": "/ready", "path": "/lab", "environment": {"A": "1"}}]),
    ("secrets", [{"name": "token", "value": "x", "environment": "T" * 255}]),
    ("roles", [{"name": "worker", "size": 2, "image": "a:1", "command": "run", "ready": "80/x", "environment": {"B": "1"}}]),
    ("environment", {"A": "<% rank %>", "B_1": 0.5}),
    ("command", "train"),
    ("bootstrap", "prepare"),
    ("image", "localhost:5000/a/b:1"),
    ("after", ["other"]),
    ("not_before", "2026-12-24T18:00:00+01:00"),
    ("user", {"uid": "1001"}),
    ("port_range", "01024-02000"),
)  # fmt: skip


def odd(value: Any, choices: Choices) -> Any:
    """The value with an odd text in one of its texts or names, perhaps."""
    if isinstance(value, str):
        at = choices.below(len(value) + 1)
        return value[:at] + choices.of(ODD) + value[at:] if choices.below(3) else value
    if isinstance(value, list):
        return [odd(part, choices) for part in value]
    if isinstance(value, dict) and value:
        name = choices.of(list(value))
        rest = {other: part for other, part in value.items() if other != name}
        return {**rest, odd(name, choices) if choices.below(4) == 0 else name: odd(value[name], choices)}
    return value


def ports_of(request: Request) -> tuple[Port, ...]:
    first, _last = parse_port_range(request.port_range)
    wanted = enumerate(wanted_ports(request, "127.0.0.1"))
    return tuple(
        Port(one, port, address, preferred or first + place) for place, (one, port, preferred, address) in wanted
    )


@fuzzed(600)
def test_what_a_launch_accepts_all_later_readers_accept(choices: Choices) -> None:
    name, usual = choices.of(VALUES)
    amount = choices.of(("memory", "shm", "disk", "log_size"))
    asked = {"name": "train", "owner": "alice", name: odd(usual, choices)}
    try:
        request = check_request({**asked, amount: choices.of(AMOUNTS)} if choices.below(3) == 0 else asked)
    except InputError:
        return
    assert checked_request(json.loads(json.dumps(request.to_json())), "head1") == request
    written = {variable[len("session_") :]: value for variable, value in variables_of(request).items()}
    for secret in written.get("secrets", ()):
        secret["value"] = "x"
    assert check_request(written) == request
    made = plan(request, ports=ports_of(request))
    assert validation.plan(made.to_json(), "head1") == validation.plan(made.to_short_json(), "head1") == made
    check_agreement(made, request, made.agents, "head1")
    assert [invalid_labels(container.labels) for container in made.containers] == [""] * request.size
