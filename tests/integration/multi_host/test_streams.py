# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine passes on to a container, on the engine of each host of the lab."""

from __future__ import annotations

import pytest
from agents_lab import NAMES, REFERENCE, Lab

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine

# More than an engine and a pipe keep for a reader.
SIZE = 300_000
LATE = f"sleep 1; read -r size; head -c $size | wc -c | grep -q '^{SIZE}$' && echo all has arrived >&2"


@pytest.mark.parametrize("agent", NAMES)
def test_a_container_that_reads_late_gets_everything(lab: Lab, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker 28.5 drops what it has not passed on when the sender closes the stream."""
    with lab.engine(agent) as client:
        engine = Engine(client.base_url, agent=agent)
        monkeypatch.setattr(engine, "_borrow", lambda: client)
        body = {"Image": REFERENCE, "Entrypoint": ["/bin/sh", "-c", LATE], "OpenStdin": True, "StdinOnce": True}
        identity = engine.create("late-reader", body)
        try:
            with engine.standard_input(identity) as send:
                engine.start(identity)
                send(b"%d\n" % SIZE + b"x" * SIZE, b"all has arrived")
            assert client.wait(identity, timeout=60)["StatusCode"] == 0
        finally:
            engine.remove(identity)
