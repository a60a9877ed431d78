# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image that a single host has reaches the others, also where the engines compute different IDs for it.

With AGENT_SUITES=bookworm,trixie,trixie+containerd, one of the three hosts uses the image store of containerd.
"""

from __future__ import annotations

import subprocess

import pytest
from agents_lab import NAMES, SUITES, Agents, Host, Lab
from controller import Session
from engine_lab import archive, busybox

IMAGE = "cluster-compute-test/of-one-host:1"
CHANGES = ("ENV GREETING=hello", "LABEL purpose=test", "USER 65534", "WORKDIR /tmp")
# One container fills a host.
THREE = {"session_cluster_size": 3, "session_cluster_mode": "multi-node", "session_cpus": 2, "session_memory": "64m"}


def make_image(lab: Lab, agent: str) -> None:
    """Make the image on a host, and remove it from the others."""
    for name in NAMES:
        lab.shell(name, f"docker image ls --quiet {IMAGE.partition(':')[0]} | xargs -r docker image rm --force")
    changes = [word for change in CHANGES for word in ("--change", change)]
    command = ["docker", "exec", "--interactive", lab.container(agent), "docker", "import", *changes, "-", IMAGE]
    content = archive({"bin/busybox": (busybox(), 0o755), "tmp/empty": (b"", 0o644)}, {"bin/sh": "busybox"})
    subprocess.run(command, input=content, check=True, capture_output=True, timeout=120)


def check_session(agents: Agents, image: str, source: str) -> None:
    """A launch copies the image, and the next one finds it the same everywhere."""
    first = agents.launch("borrowed", session_image=image, **THREE).check()
    others = ", ".join(name for name in NAMES if name != source)
    # Ansible wraps a long message.
    assert f"Image {image}: copied from {source} to {others}" in " ".join(first.text.split())
    assert Session(agents, "borrowed").say("sub2", "echo $GREETING $BACKENDAI_CLUSTER_HOST") == "hello sub2"
    again = agents.launch("borrowed", session_image=image, **THREE).check()
    assert again.changed == 0
    assert "copied" not in again.text
    agents.terminate("borrowed").check()


@pytest.mark.parametrize("source", ["agent1", "agent3"] if len(SUITES) > 1 else ["agent1"])
def test_an_image_of_one_host_is_copied_once(agents: Agents, lab: Lab, source: str) -> None:
    make_image(lab, source)
    check_session(agents, IMAGE, source)


@pytest.mark.skipif(
    not Host.of("agent3").has_containerd_store,
    reason="only containerd's store gives an image without a registry a digest",
)
def test_an_image_is_copied_by_its_digest(agents: Agents, lab: Lab) -> None:
    make_image(lab, "agent3")
    digests = lab.shell("agent3", f"docker image inspect --format '{{{{index .RepoDigests 0}}}}' {IMAGE}").check()
    check_session(agents, digests.text.strip(), "agent3")
