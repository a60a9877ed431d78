# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image of a session's container on three hosts: it reaches the others, and a fault of its host leaves no half image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import Done, Session
from own_objects import LABEL

IMAGE = "cluster-compute-test/committed:1"
OWNER = "cluster.compute.origin.owner"
SIZE = {"session_cpus": 1, "session_memory": "256m"}
# The reference image has no pip, but its Python reads what pip has installed; this is what C(pip freeze) lists.
FREEZE = (
    "python3 -c 'import importlib.metadata as m; "
    'print(*sorted(f"{d.name}=={d.version}" for d in m.distributions()), sep="\\n")\''
)
INSTALL = """\
set -e
folder=$(python3 -c 'import site; print(site.getusersitepackages())')
mkdir -p $folder/of_mine-2.5.dist-info
echo 'VALUE = 7' >$folder/of_mine.py
printf 'Metadata-Version: 2.1\\nName: of-mine\\nVersion: 2.5\\n' >$folder/of_mine-2.5.dist-info/METADATA
"""
HOST_KEY = "/etc/cluster-compute/ssh_host_ed25519_key"
TEMPORARY = "/var/lib/docker/tmp"
UNPACKS = f'[ "$(du -sm {TEMPORARY} | cut -f 1)" -gt 10 ]'
# More than the disk of C(full) holds.
CHANGE = "head -c 48M /dev/urandom >$HOME/weights\n"


@pytest.fixture(scope="module")
def built(agents: Agents, lab: Lab) -> Iterator[Session]:
    """A session on agent2, in which something is installed, and its image on all agents."""
    session = agents.launched("built", session_agents=["agent2"], **SIZE)
    session.say("main1", INSTALL + CHANGE)
    try:
        assert commit(agents).check().changed == 1
        yield session
    finally:
        agents.terminate("built")
        for agent in NAMES:
            lab.shell(
                agent, f"docker image ls --quiet --filter label={OWNER}={agents.owner} | xargs -r docker image rm -f"
            )


def commit(agents: Agents, *arguments: str) -> Done:
    return agents.play("session_commit", *arguments, session_name="built", session_commit_image=IMAGE)


def images(agents: Agents, agent: str) -> list[str]:
    """All images of this owner on an agent, with and without a name."""
    listed = f"docker image ls --all --no-trunc --format '{{{{.ID}}}}' --filter label={OWNER}={agents.owner}"
    return sorted(agents.lab.shell(agent, listed).check().text.split())


def host_key(agents: Agents, session: Session) -> str:
    """The digest of the host key of a session with one container."""
    [container] = session.document["containers"]
    script = f"docker exec $(docker ps --quiet --filter label={LABEL}={session.id}) sha256sum {HOST_KEY}"
    return agents.lab.shell(container["agent"], script).check().text


@contextmanager
def full(lab: Lab, agent: str) -> Iterator[None]:
    """The disk of an agent's engine fills up during a load, which no check before it can see."""
    lab.shell(agent, f"mount -t tmpfs -o size=32m tmpfs {TEMPORARY}").check()
    try:
        yield
    finally:
        lab.shell(agent, f"umount {TEMPORARY}").check()


def on_all(agents: Agents) -> list[str]:
    """The image that every agent has, and no other one."""
    [first, *others] = [images(agents, agent) for agent in NAMES]
    assert len(first) == 1
    assert others == [first, first]
    return first


def test_an_engine_that_is_killed_leaves_no_half_image(agents: Agents, built: Session, whole: Lab) -> None:
    """The name keeps the former image. The next test makes an image again."""
    before = on_all(agents)
    built.say("main1", CHANGE)
    killer = whole.kill_engine("agent2", UNPACKS)
    done = commit(agents)
    assert killer.wait(timeout=60) == 0
    assert done.code != 0, done.text
    assert "agent2" in done.message
    whole.start_engine("agent2")
    assert on_all(agents) == before
    assert whole.shell("agent2", f"ls -A {TEMPORARY}").check().text == ""
    agents.launch("built", session_agents=["agent2"], **SIZE).check()


@pytest.mark.large
def test_a_full_disk_of_another_agent_is_a_warning(agents: Agents, built: Session, lab: Lab) -> None:
    """A session there gets a copy, which takes the name of the former image: the same packages, and other keys of the host."""
    before = on_all(agents)
    built.say("main1", CHANGE)
    with full(lab, "agent3"):
        done = commit(agents).check()
    assert f"Image {IMAGE} is on agent2, and not on all other agents: " in " ".join(done.text.split())
    assert images(agents, "agent3") == before
    other = agents.launched("other", session_agents=["agent3"], session_image=IMAGE, **SIZE)
    assert images(agents, "agent2")[0] in images(agents, "agent3")
    assert "of-mine==2.5" in other.say("main1", FREEZE).splitlines()
    for command in (FREEZE, "sha256sum weights"):
        assert other.say("main1", command) == built.say("main1", command)
    assert host_key(agents, other) != host_key(agents, built)
    agents.terminate("other").check()


def test_an_agent_that_a_commit_did_not_reach_gets_the_new_image_with_a_launch(agents: Agents, built: Session) -> None:
    """It has the former image of that name, which neither runs there nor replaces the new one elsewhere. The next commit removes it."""
    built.say("main1", CHANGE)
    commit(agents, "--limit", "localhost,agent1,agent2").check()
    assert images(agents, "agent3") != images(agents, "agent2") == images(agents, "agent1")
    other = agents.launched("other", session_agents=["agent3"], session_image=IMAGE, **SIZE)
    assert other.say("main1", "sha256sum weights") == built.say("main1", "sha256sum weights")
    agents.terminate("other").check()
    assert commit(agents).check().changed == 1
    on_all(agents)


def test_a_disk_that_fills_up_leaves_no_half_image(agents: Agents, built: Session, lab: Lab) -> None:
    before = on_all(agents)
    built.say("main1", CHANGE)
    with full(lab, "agent2"):
        done = commit(agents)
        assert done.code != 0, done.text
        assert "no space left on device" in done.message
        assert lab.shell("agent2", f"ls -A {TEMPORARY}").check().text == ""
    assert on_all(agents) == before
