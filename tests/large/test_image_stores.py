# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images between engines that store them in containerd and engines that do not, which give the same image different IDs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_lab import NAMES, REFERENCE, Agents, Lab
from controller import Done, Session
from own_objects import LABEL

# Docker Engine 20.10, and 26.1 with and without containerd's image store.
SUITES = ("bookworm", "trixie", "trixie+containerd")
CLASSIC, CONTAINERD = "agent1", "agent3"
IMAGE = "cluster-compute-test/of-a-store:1"
SIZE = {"session_cpus": 1, "session_memory": "256m"}
OWNER = "cluster.compute.origin.owner"
CHANGE = "head -c 24M /dev/urandom >weights && ln -sf weights link"
LOOK = "sha256sum link && readlink link && test ! -e /etc/issue"
BUILD = f"printf 'FROM {REFERENCE}\\nENV GREETING=hello\\n' | DOCKER_BUILDKIT=0 docker build -q -t {IMAGE} -"
STORE = "/var/lib/docker/containerd/daemon/io.containerd."
SNAPSHOTS, ARRIVING = STORE + "snapshotter.v1.overlayfs/snapshots", STORE + "content.v1.content/ingest"


@pytest.fixture(scope="module")
def lab(engine_host: str) -> Iterator[Lab]:
    made = Lab("image_stores", SUITES)
    try:
        made.make()
        yield made
    finally:
        made.destroy()


@pytest.fixture
def fresh(agents: Agents, lab: Lab) -> Iterator[Agents]:
    """The agents, which have neither the image nor a session before and after a test."""
    remove(lab)
    yield agents
    for name, _state in agents.states():
        agents.terminate(name)
    remove(lab)


def remove(lab: Lab) -> None:
    for agent in NAMES:
        lab.shell(agent, f"docker image ls -q {IMAGE.partition(':')[0]} | xargs -r docker image rm -f")
        lab.shell(agent, f"docker image ls -q --filter label={OWNER} | xargs -r docker image rm -f")


def launch(agents: Agents, agent: str, image: str) -> Session:
    """A session from an image on one agent, which a second run leaves alone."""
    given = {"session_agents": [agent], "session_image": image, **SIZE}
    session = agents.launched("built", **given)
    again = agents.launch("built", **given).check()
    assert again.changed == 0, again.text
    return session


def commit(agents: Agents) -> Done:
    return agents.play("session_commit", session_name="built", session_commit_image=IMAGE)


def committed(agents: Agents) -> dict[str, list[str]]:
    """The names of all images of this owner that were made of containers, by agent."""
    listed = f"docker image ls --all --format '{{{{.Repository}}}}:{{{{.Tag}}}}' --filter label={OWNER}={agents.owner}"
    return {agent: sorted(agents.lab.shell(agent, listed).check().text.split()) for agent in NAMES}


def identities(agents: Agents) -> list[str]:
    """The images of this owner on the agent with containerd's store, with and without a name."""
    listed = f"docker image ls --all --no-trunc --format '{{{{.ID}}}}' --filter label={OWNER}={agents.owner}"
    return sorted(agents.lab.shell(CONTAINERD, listed).check().text.split())


@pytest.mark.parametrize(("source", "taker"), [(CLASSIC, CONTAINERD), (CONTAINERD, CLASSIC)])
def test_a_launch_copies_an_image_to_the_other_store(fresh: Agents, lab: Lab, source: str, taker: str) -> None:
    lab.shell(source, BUILD).check()
    assert launch(fresh, taker, IMAGE).say("main1", "echo $GREETING") == "hello"


def test_what_a_container_has_comes_to_the_other_store_and_back(fresh: Agents, lab: Lab) -> None:
    """Each image is made of a container of the last one, and replaces it: at once, but where that container runs by the next commit."""
    image, seen = REFERENCE, ""
    for agent in (CONTAINERD, CLASSIC, CONTAINERD, CLASSIC):
        session = launch(fresh, agent, image)
        assert image == REFERENCE or session.say("main1", LOOK) == seen
        root = f"docker exec --user 0 $(docker ps --quiet --filter label={LABEL}={session.id})"
        lab.shell(agent, f"{root} rm -f /etc/issue").check()
        session.say("main1", CHANGE)
        assert commit(fresh).check().changed == 1
        seen = session.say("main1", LOOK)
        fresh.terminate("built").check()
        former = [] if image == REFERENCE else ["<none>:<none>"]
        assert committed(fresh) == {name: [*(former if name == agent else []), IMAGE] for name in NAMES}
        image = IMAGE


def test_a_full_disk_and_a_killed_engine_leave_no_half_image(fresh: Agents, lab: Lab) -> None:
    """The image that has the name stays, on the agent that makes one and on the agent that gets a copy."""
    session = launch(fresh, CLASSIC, REFERENCE)
    commit(fresh).check()
    before = identities(fresh)
    session.say("main1", CHANGE)
    lab.shell(CONTAINERD, f"mount -t tmpfs -o size=16m tmpfs {SNAPSHOTS}").check()
    done = commit(fresh).check()
    lab.shell(CONTAINERD, f"umount {SNAPSHOTS}").check()
    assert f"Image {IMAGE} is on {CLASSIC}, and not on all other agents: " in " ".join(done.text.split())
    assert identities(fresh) == before
    fresh.terminate("built").check()
    session = launch(fresh, CONTAINERD, REFERENCE)
    commit(fresh).check()
    before = identities(fresh)
    session.say("main1", CHANGE)
    killer = lab.kill_engine(CONTAINERD, f'[ "$(du -sm {ARRIVING} | cut -f 1)" -gt 10 ]')
    done = commit(fresh)
    assert killer.wait(timeout=60) == 0
    assert done.code != 0, done.text
    lab.start_engine(CONTAINERD)
    assert identities(fresh) == before
