# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian hosts with kernels of their own: systemd, cgroups of version 2, the kernel's NFS client, soft-RoCE.

Containers as hosts share the kernel of this machine, whose cgroups may be of version 1. QEMU emulates the machines, so they run
everywhere: a /dev/kvm may be there and still not boot Debian's kernel.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller import PLAYBOOK, ROOT, Done, run
from servers import free_ports

NAME = "machine1"
SUITE = "trixie"
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "mkfs.ext4": "e2fsprogs", "mmdebstrap": "mmdebstrap"}
PACKAGES = (
    "systemd systemd-sysv udev dbus kmod iproute2 iptables docker.io docker-cli openssh-server python3 python3-docker "
    "ca-certificates nfs-common nfs-kernel-server initramfs-tools"
).split()
# Debian's kernel for virtual machines, and the one with all drivers.
SMALL_KERNEL, WHOLE_KERNEL = "linux-image-cloud-amd64", "linux-image-amd64"
# QEMU 7.2 emulates CMPXCHG16B in a way that ends Linux 6.12 at a memory allocation.
MACHINE = "-accel tcg,thread=multi -cpu qemu64,-cx16 -smp 2 -m 3072 -nographic".split()
KERNEL = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off"
NETWORK = "[Match]\nName=eth0\n[Network]\nDHCP=yes\n"
WIRED = "[Match]\nName=eth1\n[Network]\nAddress=%s/24\n"
PATIENCE = 600
ROOM = "8G"


def install(root: Path, kernel: str = SMALL_KERNEL, suite: str = SUITE) -> None:
    """Install Debian into a directory, from which any number of machines can be made."""
    missing = [package for program, package in TOOLS.items() if not shutil.which(program)]
    assert not missing, f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    assert os.geteuid() == 0, "mmdebstrap needs root"
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
    run([*command, f"--include={','.join([*PACKAGES, kernel])}", suite, str(root)], timeout=1800).check()


@dataclass(frozen=True)
class Wire:
    """An end of a cable between two machines: an option of QEMU, and the address of the machine there."""

    option: str
    address: str


class Machine:
    """The host, and a user's shell in a controller whose inventory has it alone, or with others."""

    def __init__(
        self, folder: Path, name: str = NAME, at: str = "127.0.0.1", wire: Wire | None = None, ports: Sequence[int] = ()
    ) -> None:
        self.folder = folder
        self.name = name
        self.at = at
        self.wire = wire
        self.port, self.session_port = ports or free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, root: Path) -> None:
        """Write a disk image with the directory as its content, and the inventory."""
        self.folder.mkdir(parents=True)
        self._configure(root)
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(next((root / "boot").glob(name + "-*")), self.folder / name)
        disk = str(self.folder / "disk.img")
        run(["truncate", "-s", ROOM, disk]).check()
        run(["mkfs.ext4", "-q", "-d", str(root), disk], timeout=300).check()
        self.write_inventory()

    def write_inventory(self, *others: Machine) -> None:
        hosts = {machine.name: machine.variables() for machine in (self, *others)}
        (self.folder / "inventory.json").write_text(json.dumps({"agents": {"hosts": hosts}}))

    def variables(self) -> dict[str, Any]:
        """The variables of the machine in an inventory."""
        return {
            "ansible_host": self.at,
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.folder / "key"),
            "ansible_ssh_common_args": shlex.join(self._options()),
            **({"agent_swarm_address": self.wire.address} if self.wire else {}),
        }

    def _configure(self, root: Path) -> None:
        for name in ("key", "host_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]).check()
        (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(self.folder / "key.pub", root / "root/.ssh/authorized_keys")
        shutil.copy(self.folder / "host_key", root / "etc/ssh/ssh_host_ed25519_key")
        public = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[{self.at}]:{self.port} {public}")
        service = root / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
        service.unlink(missing_ok=True)
        service.symlink_to("/lib/systemd/system/systemd-networkd.service")
        # Users of the console: a slow machine waits for its device until the start counts as failed.
        getty = root / "etc/systemd/system/serial-getty@ttyS0.service"
        getty.unlink(missing_ok=True)
        getty.symlink_to("/dev/null")
        files = {
            "hostname": self.name,
            "hosts": f"127.0.0.1 localhost {self.name}\n",
            "systemd/network/10.network": NETWORK,
            "systemd/network/20.network": WIRED % self.wire.address if self.wire else "",
        }
        for name, text in {**files, "fstab": "/dev/vda / ext4 defaults 0 1\n"}.items():
            (root / "etc" / name).write_text(text)

    def start(self) -> None:
        """Start the machine, and wait until systemd has started all services."""
        forwards = ",".join(f"hostfwd=tcp:{self.at}:{port}-:{inner}" for port, inner in self._ports().items())
        parts = {
            "-kernel": self.folder / "vmlinuz",
            "-initrd": self.folder / "initrd.img",
            "-append": KERNEL,
            "-drive": f"file={self.folder / 'disk.img'},if=virtio,format=raw,cache=unsafe",
        }
        networks = [f"user,id=net0,{forwards}", *([f"socket,id=net1,{self.wire.option}"] if self.wire else [])]
        command = ["qemu-system-x86_64", *MACHINE, *(str(word) for part in parts.items() for word in part)]
        for number, network in enumerate(networks):
            command += ["-netdev", network, "-device", f"virtio-net-pci,netdev=net{number},mac={self._mac(number)}"]
        with (self.folder / "console.log").open("wb") as console:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.shell("systemctl is-system-running --wait").text.strip() != "running":
            assert self._runs(), self._console()
            assert time.monotonic() < end, self._console()
            time.sleep(2)

    def _runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _console(self) -> str:
        """The end of what the machine has said."""
        return (self.folder / "console.log").read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def reboot(self) -> None:
        before = self.says("cat /proc/sys/kernel/random/boot_id")
        self.shell("systemctl reboot")
        end = time.monotonic() + PATIENCE
        while self.shell("cat /proc/sys/kernel/random/boot_id").text.strip() in ("", before):
            assert time.monotonic() < end, self._console()
            time.sleep(2)
        self.wait_until_up()

    def shell(self, script: str, timeout: float = 120) -> Done:
        """Run a script on the host as root."""
        command = ["ssh", "-i", str(self.folder / "key"), "-p", str(self.port), *self._options()]
        try:
            done = subprocess.run(
                [*command, f"root@{self.at}", script], capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return Done(255, "")
        return Done(done.returncode, done.stdout)

    def says(self, script: str) -> str:
        return self.shell(script).check().text.strip()

    def load(self, *images: str) -> None:
        """Copy images from this machine's engine."""
        pipe = f"docker save {shlex.join(images)} | gzip -1 | ssh -i {self.folder / 'key'} -p {self.port} "
        run(["sh", "-c", pipe + shlex.join([*self._options(), f"root@{self.at}", "docker load"])], timeout=300).check()

    def play(self, playbook: str, **variables: object) -> Done:
        """Run a playbook as a user of this controller does."""
        given = {"session_port_range": f"{self.session_port}-{self.session_port + 1}", **variables}
        command = [PLAYBOOK, "-i", str(self.folder / "inventory.json"), f"playbooks/{playbook}.yml"]
        own = {"HOME": str(self.folder), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_TIMEOUT": "60"}
        kept = {name: text for name, text in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment = {**kept, **own, "ANSIBLE_STDOUT_CALLBACK": "default", "ANSIBLE_NOCOLOR": "1"}
        return run([*command, "-e", json.dumps(given)], cwd=ROOT, env=environment, timeout=900)

    def ssh(self, session: str, host: str, command: str) -> str:
        """The output of a command in a container, as the user logs in."""
        config = self.folder / ".cluster-compute" / session / "ssh_config"
        return run(["ssh", "-F", str(config), host, command], timeout=120).check().text.strip()

    def _ports(self) -> dict[int, int]:
        """The ports of the machine, by the local port that leads to each. A session on the network of its hosts needs two."""
        return {self.port: 22, **{port: port for port in (self.session_port, self.session_port + 1)}}

    def _mac(self, number: int) -> str:
        """A MAC address. QEMU gives each machine the same address, and machines on one wire need different addresses."""
        return "52:54:00:%02x:00:%02x" % (int(self.at.rpartition(".")[2]), number)

    def _options(self) -> Sequence[str]:
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        options = ("StrictHostKeyChecking=yes", known, "IdentitiesOnly=yes", "BatchMode=yes", "ConnectTimeout=60")
        return [word for option in options for word in ("-o", option)]


def pair(folder: Path) -> tuple[Machine, Machine]:
    """Two machines with a cable between them. The first one is the user's controller, after C(write_inventory)."""
    *ports, one, other = free_ports(4)
    ends = ((one, other, "10.77.0.1"), (other, one, "10.77.0.2"))
    first, second = (
        Machine(
            folder / f"m{number}",
            f"machine{number}",
            f"127.0.0.{number}",
            Wire(f"localaddr=127.0.0.1:{own},udp=127.0.0.1:{far}", address),
            ports,
        )
        for number, (own, far, address) in enumerate(ends, 1)
    )
    return first, second
