# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Debian host with a kernel of its own: systemd, cgroups of version 2, the kernel's NFS client. QEMU emulates the machine.

Containers as hosts share the kernel of this machine, whose cgroups may be of version 1. The emulation needs no rights for
virtual machines, and runs everywhere.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controller import PLAYBOOK, ROOT, Done, run
from servers import free_ports

NAME = "machine1"
SUITE = "trixie"
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "mkfs.ext4": "e2fsprogs", "debootstrap": "debootstrap"}
PACKAGES = (
    "systemd systemd-sysv udev dbus kmod iproute2 iptables docker.io docker-cli openssh-server python3 python3-docker "
    "ca-certificates nfs-common nfs-kernel-server linux-image-cloud-amd64 initramfs-tools"
).split()
# QEMU 7.2 emulates CMPXCHG16B in a way that ends Linux 6.12 at a memory allocation.
MACHINE = "-accel tcg,thread=multi -cpu qemu64,-cx16 -smp 2 -m 3072 -nographic".split()
KERNEL = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off"
NETWORK = "[Match]\nName=eth0\n[Network]\nDHCP=yes\n"
PATIENCE = 300
ROOM = "8G"


class Machine:
    """The host, and a user's shell in a controller whose inventory has it alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.session_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Install Debian into a disk image, and write the inventory."""
        missing = [package for program, package in TOOLS.items() if not shutil.which(program)]
        assert not missing, f"apt-get install -y --no-install-recommends {' '.join(missing)}"
        assert os.geteuid() == 0, "debootstrap needs root"
        self.folder.mkdir(parents=True)
        root = self.folder / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root)]
        run(command, timeout=900).check()
        self._configure(root)
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(next((root / "boot").glob(name + "-*")), self.folder / name)
        disk = str(self.folder / "disk.img")
        run(["truncate", "-s", ROOM, disk]).check()
        run(["mkfs.ext4", "-q", "-d", str(root), disk], timeout=300).check()
        shutil.rmtree(root)
        host: dict[str, Any] = {"ansible_host": "127.0.0.1", "ansible_port": self.port, "ansible_user": "root"}
        host |= {"ansible_ssh_private_key_file": str(self.folder / "key")}
        host |= {"ansible_ssh_common_args": shlex.join(self._options())}
        (self.folder / "inventory.json").write_text(json.dumps({"agents": {"hosts": {NAME: host}}}))

    def _configure(self, root: Path) -> None:
        for name in ("key", "host_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]).check()
        (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(self.folder / "key.pub", root / "root/.ssh/authorized_keys")
        shutil.copy(self.folder / "host_key", root / "etc/ssh/ssh_host_ed25519_key")
        public = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")
        wanted = root / "etc/systemd/system/multi-user.target.wants"
        (wanted / "systemd-networkd.service").symlink_to("/lib/systemd/system/systemd-networkd.service")
        files = {
            "hostname": NAME,
            "hosts": f"127.0.0.1 localhost {NAME}\n",
            "systemd/network/10.network": NETWORK,
        }
        for name, text in {**files, "fstab": "/dev/vda / ext4 defaults 0 1\n"}.items():
            (root / "etc" / name).write_text(text)

    def start(self) -> None:
        """Start the machine, and wait until systemd has started all services."""
        forwards = ",".join(f"hostfwd=tcp:127.0.0.1:{port}-:{inner}" for port, inner in self._ports().items())
        parts = {
            "-kernel": self.folder / "vmlinuz",
            "-initrd": self.folder / "initrd.img",
            "-append": KERNEL,
            "-drive": f"file={self.folder / 'disk.img'},if=virtio,format=raw,cache=unsafe",
            "-netdev": f"user,id=net,{forwards}",
            "-device": "virtio-net-pci,netdev=net",
        }
        command = ["qemu-system-x86_64", *MACHINE, *(str(word) for part in parts.items() for word in part)]
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
                [*command, "root@127.0.0.1", script], capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return Done(255, "")
        return Done(done.returncode, done.stdout)

    def says(self, script: str) -> str:
        return self.shell(script).check().text.strip()

    def load(self, image: str) -> None:
        """Copy an image from this machine's engine."""
        pipe = f"docker save {shlex.quote(image)} | gzip -1 | ssh -i {self.folder / 'key'} -p {self.port} "
        run(["sh", "-c", pipe + shlex.join([*self._options(), "root@127.0.0.1", "docker load"])], timeout=300).check()

    def play(self, playbook: str, **variables: object) -> Done:
        """Run a playbook as a user of this controller does."""
        given = {"session_port_range": f"{self.session_port}-{self.session_port}", **variables}
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
        return {self.port: 22, self.session_port: self.session_port}

    def _options(self) -> Sequence[str]:
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        options = ("StrictHostKeyChecking=yes", known, "IdentitiesOnly=yes", "BatchMode=yes", "ConnectTimeout=60")
        return [word for option in options for word in ("-o", option)]
