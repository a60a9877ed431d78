# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Container Toolkit from a given repository.

The host, its engine and its package manager are real; no host here has a GPU. A folder over /proc/driver stands for the driver,
and a package with a program that writes what nvidia-ctk writes stands for the toolkit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from agents_lab import Agents, Lab

HOST = "agent2"
# The tasks of the role that these tests are about.
GPU = ("--tags", "gpu", "--limit", HOST)
REPOSITORY = "Types: deb\nURIs: file:/opt/toolkit\nSuites: ./\nTrusted: yes\n"
NVIDIA_CTK = r"""#!/usr/bin/python3
import json, sys
assert sys.argv[1:] == ["runtime", "configure", "--runtime=docker"]
with open("/etc/docker/daemon.json") as file:
    options = json.load(file)
options["runtimes"] = {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}
with open("/etc/docker/daemon.json", "w") as file:
    json.dump(options, file)
"""
PREPARE = r"""
set -e
mount -t tmpfs tmpfs /proc/driver
mkdir -p /proc/driver/nvidia /opt/toolkit /tmp/package/DEBIAN /tmp/package/usr/bin
cp /etc/docker/daemon.json /tmp/daemon.json
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module' >/proc/driver/nvidia/version
cat >/tmp/package/usr/bin/nvidia-ctk <<'END'
%s
END
chmod 755 /tmp/package/usr/bin/nvidia-ctk
{
    echo 'Package: nvidia-container-toolkit'
    echo 'Version: 1.0'
    echo 'Architecture: all'
    echo 'Maintainer: test@example.com'
    echo 'Description: stands for the toolkit'
} >/tmp/package/DEBIAN/control
dpkg-deb --build /tmp/package /opt/toolkit/toolkit.deb >/dev/null
cd /opt/toolkit
{
    cat /tmp/package/DEBIAN/control
    echo 'Filename: ./toolkit.deb'
    echo "Size: $(stat -c %%s toolkit.deb)"
    echo "SHA256: $(sha256sum toolkit.deb | cut -d' ' -f1)"
} >Packages
"""
CLEAN = r"""
umount /proc/driver
DEBIAN_FRONTEND=noninteractive apt-get purge -qq -y nvidia-container-toolkit
rm -rf /opt/toolkit /tmp/package /etc/apt/sources.list.d/cluster-compute-nvidia.sources
sed 's/}[[:space:]]*$/, "runtimes": {}}/' /tmp/daemon.json >/etc/docker/daemon.json
kill -HUP "$(cat /var/run/docker.pid)"
while docker info --format '{{ json .Runtimes }}' | grep -q nvidia; do sleep 0.2; done
mv /tmp/daemon.json /etc/docker/daemon.json
"""
RUNTIMES = "docker info --format '{{ json .Runtimes }}'"


@pytest.fixture
def driver(lab: Lab) -> Iterator[Lab]:
    """A host that looks as if it had the driver, and a repository with the toolkit."""
    before = json.loads(lab.shell(HOST, "cat /etc/docker/daemon.json").text)
    lab.shell(HOST, PREPARE % NVIDIA_CTK).check()
    yield lab
    lab.shell(HOST, CLEAN).check()
    assert json.loads(lab.shell(HOST, "cat /etc/docker/daemon.json").text) == before


def test_a_host_with_the_driver_gets_the_runtime_and_its_containers_keep_running(driver: Lab, agents: Agents) -> None:
    assert agents.play("provision_agents", *GPU).check().changed == 0
    assert "nvidia" not in driver.shell(HOST, RUNTIMES).text
    agents.launch("train", session_agents=[HOST]).check()
    before = driver.held(HOST)
    wanted = {"agent_gpu_toolkit": True, "agent_gpu_repository": REPOSITORY}
    assert agents.play("provision_agents", *GPU, **wanted).check().changed > 0
    assert '"nvidia"' in driver.shell(HOST, RUNTIMES).text
    assert driver.held(HOST) == before
    assert "Up" in driver.shell(HOST, "docker ps --filter label=cluster.compute.session --format '{{.Status}}'").text
    assert agents.play("provision_agents", *GPU, **wanted).check().changed == 0


def test_without_a_repository_that_has_it_the_host_is_named(driver: Lab, agents: Agents) -> None:
    done = agents.play("provision_agents", *GPU, agent_gpu_toolkit=True)
    assert done.code != 0
    assert "agent2: the NVIDIA Container Toolkit was not installed" in done.text
    assert "set agent_gpu_repository" in done.text
