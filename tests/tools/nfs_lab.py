# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An NFS server on a host of the lab, and its export on two others: both are programs, because the kernel may have no NFS.

The server squashes root. Its process can be stopped, which is what a client sees of a lost server.
"""

from __future__ import annotations

import subprocess
import sys
import time
import zipfile
from pathlib import Path

from agents_lab import Lab
from controller import run

SERVER, CLIENTS = "agent3", ("agent1", "agent2")
FOLDER = "/srv/nas"
EXPORT = "/srv/shared/export"
TOOLS = "/opt/nfs-lab"
OPTIONS = (
    """
NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; Minor_Versions = 0, 1; Only_Numeric_Owners = true; }
EXPORT {
  Export_Id = 1; Path = %s; Pseudo = /data; Access_Type = RW; Squash = Root_Squash; SecType = sys; Protocols = 4;
  Anonymous_Uid = 65534; Anonymous_Gid = 65534; Transports = TCP; FSAL { Name = VFS; }
}
"""
    % EXPORT
)
PACKAGES = "libnfs13 libfuse2"
START = f"mkdir -p /run/ganesha; ganesha.nfsd -f {TOOLS}/ganesha.conf -L /var/log/ganesha.log -p /run/ganesha.pid"


class FileServer:
    """The server and its clients."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._lab, self._folder = lab, folder

    def start(self) -> None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(self._folder)]
        run([*command, "mfusepy==3.1.1"]).check()
        for wheel in self._folder.glob("mfusepy-*.whl"):
            zipfile.ZipFile(wheel).extract("mfusepy.py", self._folder)
        (self._folder / "ganesha.conf").write_text(OPTIONS)
        (self._folder / "nfs_mount.py").write_bytes(Path(__file__).with_name("nfs_mount.py").read_bytes())
        self._install(SERVER, "nfs-ganesha nfs-ganesha-vfs")
        self._lab.shell(SERVER, f"mkdir -p {EXPORT}; chmod 755 {EXPORT}; {START}").check()
        for agent in CLIENTS:
            self._install(agent, PACKAGES)
            self._mount(agent)

    def say(self, script: str) -> str:
        """The output of a script on the server, as root."""
        return self._lab.shell(SERVER, script).check().text

    def stop(self) -> None:
        """Stop the server as it is: it answers nothing, and its connections stay."""
        self.say("kill -STOP $(cat /run/ganesha.pid)")

    def go_on(self) -> None:
        self.say("kill -CONT $(cat /run/ganesha.pid)")

    def remove(self) -> None:
        for agent in CLIENTS:
            self._lab.shell(agent, f"kill -KILL $(cat /run/nfs_mount.pid); umount --lazy {FOLDER}")
        self._lab.shell(SERVER, f"kill -KILL $(cat /run/ganesha.pid); rm -rf {EXPORT}")

    def _install(self, agent: str, packages: str) -> None:
        install = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {packages}"
        self._lab.shell(agent, f"mkdir -p {TOOLS} {FOLDER}; {install}", timeout=300).check()
        for name in ("mfusepy.py", "nfs_mount.py", "ganesha.conf"):
            run(["docker", "cp", str(self._folder / name), f"{self._lab.container(agent)}:{TOOLS}/"]).check()

    def _mount(self, agent: str) -> None:
        address = self._lab.address(SERVER)
        self._lab.shell(agent, "test -e /dev/fuse || mknod -m 666 /dev/fuse c 10 229").check()
        script = (
            f"exec python3 {TOOLS}/nfs_mount.py 'nfs://{address}/data?version=4' {FOLDER} >/var/log/nfs_mount.log 2>&1"
        )
        subprocess.run(["docker", "exec", "--detach", self._lab.container(agent), "sh", "-c", script], check=True)
        deadline = time.monotonic() + 30
        while self._lab.shell(agent, f"grep -q ' {FOLDER} fuse' /proc/mounts && ls {FOLDER}").code != 0:
            assert time.monotonic() < deadline, self._lab.shell(agent, "cat /var/log/nfs_mount.log").text
            time.sleep(0.5)
