# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare Debian host that systemd has booted, reached by SSH. It can reboot, and be a controller itself."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_lab import NAMES, ROOM, Lab
from controller import ROOT, Done, run
from host_files import pip_install
from servers import until

SCENARIO = "systemd"
NAME = NAMES[0]
PATIENCE = 120
NOT_COPIED = (".git", ".venv", ".cache", ".ansible", "./build", "__pycache__", "*.tar.gz")
MINOR = "import sys; print('%d.%d' % sys.version_info[:2])"


class SystemdHost(Lab):
    """The host. It is the only agent, and its engine creates a Swarm. The systemd of newer suites needs cgroups of version 2."""

    names = (NAME,)
    variables: Mapping[str, Any] = {**ROOM, "agent_swarm": True}

    def __init__(self) -> None:
        super().__init__(SCENARIO, ["bookworm+systemd"])

    def make(self) -> None:
        """Create the host, in place of one that a killed run has left."""
        self.write_inventory()
        self.destroy_leftovers()
        self.make_images()
        self.create()

    def provision(self, *arguments: str) -> Done:
        return self.play(ROOT / "playbooks/provision_agents.yml", *arguments)

    def says(self, script: str) -> str:
        """The output of a script, as root; it must succeed."""
        return self.shell(NAME, script).check().text.strip()

    def login(self, script: str, timeout: float = 300) -> Done:
        """Run a script as the user admin, in a login by SSH."""
        address = self.address(NAME)
        options = ["-F", "none", "-i", str(self.folder / "id_agents"), "-o", "BatchMode=yes"]
        options += ["-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "StrictHostKeyChecking=yes"]
        return run(["ssh", *options, f"admin@{address}", script], timeout=timeout)

    def reboot(self) -> None:
        """Boot the host again, and wait until systemd has started all services, and SSH answers."""
        run(["docker", "restart", "--time", "60", self.container(NAME)]).check()
        until(lambda: self.shell(NAME, "systemctl is-system-running --wait").text.strip() == "running", "a boot")
        until(lambda: self.login("true").code == 0, "an SSH server")

    def make_controller(self, folder: str) -> None:
        """A checkout on the host, and a virtual environment with the packages that its own Python needs to run playbooks."""
        version = self.says(f'python3 -c "{MINOR}"')
        with tempfile.TemporaryDirectory() as packages:
            wanted = ["--requirement", str(ROOT / "requirements.txt"), "--python-version", version]
            pip_install(sys.executable, "--target", packages, "--only-binary", ":all:", *wanted)
            make_environment(self, NAME, f"{folder}/venv", "python3", Path(packages))
        program = f"{folder}/venv/bin/ansible-playbook"
        lines = f"#!{folder}/venv/bin/python\\nfrom ansible.cli.playbook import main\\nmain()\\n"
        self.says(f"printf '{lines}' >{program}; chmod 755 {program}")
        copy(self, NAME, ROOT, f"{folder}/checkout", NOT_COPIED)


def copy(lab: Lab, agent: str, source: Path, target: str, leave_out: tuple[str, ...] = ()) -> None:
    """Copy the content of a folder into a folder of a host, readable for all users."""
    without = [f"--exclude={pattern}" for pattern in leave_out]
    unpack = f"mkdir -p {target} && tar -C {target} --no-same-owner -xf - && chmod -R a+rX {target}"
    with subprocess.Popen(["tar", "-C", str(source), *without, "-cf", "-", "."], stdout=subprocess.PIPE) as packed:
        into = ["docker", "exec", "-i", lab.container(agent), "sh", "-c", unpack]
        subprocess.run(into, stdin=packed.stdout, check=True, timeout=PATIENCE)
    assert packed.returncode == 0, f"{source} cannot be read"


def make_environment(lab: Lab, agent: str, folder: str, python: str, packages: Path) -> None:
    """Make a virtual environment on a host, and copy packages into it."""
    lab.shell(agent, f"{python} -m venv --without-pip {folder}").check()
    copy(lab, agent, packages, lab.shell(agent, f"echo {folder}/lib/python3*/site-packages").check().text.strip())
