# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures of tests over three agents. With KEEP_LAB=1 the agents stay, and the next run uses them as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from agents_lab import NAMES, SCENARIO, Agents, Lab
from controller import ENDED


@pytest.fixture(scope="session")
def lab(engine_host: str, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Three hosts that are agents; each part of the tests, which run side by side, has hosts of its own.

    The second part has the Swarm that the role creates, and the first one a Swarm that the role finds.
    """
    part = request.config.getoption("--part", default=None)
    made = Lab(f"{SCENARIO}-{part[0]}" if part else SCENARIO)
    keep = bool(os.environ.get("KEEP_LAB"))
    if not (keep and made.is_there()):
        made.make(has_swarm=not part or part[0] == "1")
    try:
        yield made
    finally:
        if not keep:
            made.destroy()


@pytest.fixture(scope="module")
def agents(engine_host: str, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """A controller for these hosts."""
    made = Agents(tmp_path_factory.mktemp("agents") / "own", engine_host, lab)
    try:
        yield made
    finally:
        terminate_all(made)
        made.clean()


def terminate_all(agents: Agents) -> None:
    """Terminate every session that a test has left."""
    for name, state in agents.states():
        if state not in ENDED:
            agents.terminate(name)


@pytest.fixture
def whole(lab: Lab) -> Iterator[Lab]:
    """The lab, whose hosts all work again after the test."""
    yield lab
    for agent in NAMES:
        lab.thaw(agent)
        lab.start_engine(agent)
