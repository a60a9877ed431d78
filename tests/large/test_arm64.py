# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference image for ARM, built by the role and run in emulation: half an hour on two busy cores.

It needs the packages qemu-user-static and arch-test, and mmdebstrap of the role. The kernel of this machine runs programs for ARM with
QEMU as long as this module runs; the rule for that is removed at its end.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import PLAYBOOK, ROOT, Controller, run

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import RUNTIME_PATH

IMAGE = "cluster-compute-test/arm64:1"
BUILD_SECONDS = 3600
TOOLS = {"qemu-aarch64-static": "qemu-user-static", "arch-test": "arch-test"}
RULES = Path("/proc/sys/fs/binfmt_misc")
RULE, HANDLER = Path("/usr/lib/binfmt.d/qemu-aarch64.conf"), RULES / "qemu-aarch64"
BUILD = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: cluster.compute.image
"""
FOR_ARM = {"__image_apt_options": ["--architectures=arm64"]}
PROOF = f"""
set -e
uname -m
python3 -c 'import platform, ssl; print(platform.machine())'
cd /tmp
mkdir -p /run/sshd
{RUNTIME_PATH}/libexec/ssh-keygen -q -t ed25519 -N '' -f key
server="{RUNTIME_PATH}/libexec/sshd -f /dev/null -h /tmp/key -p 2222 -o AuthorizedKeysFile=/tmp/key.pub -o StrictModes=no"
$server -t
$server
{RUNTIME_PATH}/libexec/ssh -F none -p 2222 -i key -o StrictHostKeyChecking=accept-new root@127.0.0.1 'uname -m; echo by SSH'
"""


@pytest.fixture(scope="module")
def emulation() -> Iterator[None]:
    if platform.machine() == "aarch64":
        pytest.skip("this machine is of ARM itself")
    missing = [package for program, package in TOOLS.items() if not shutil.which(program)]
    assert not missing, f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    mounts = not (RULES / "register").exists()
    if mounts:
        run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(RULES)]).check()
    adds = not HANDLER.exists()
    if adds:
        (RULES / "register").write_text(RULE.read_text())
    try:
        yield
    finally:
        if adds:
            HANDLER.write_text("-1")
        if mounts:
            run(["umount", str(RULES)]).check()


@pytest.fixture(scope="module")
def image(engine_host: str, emulation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Controller(tmp_path_factory.mktemp("arm") / "own", engine_host) as controller:
        playbook, variables = controller.folder / "build.yml", controller.folder / "build.json"
        playbook.write_text(BUILD)
        variables.write_text(json.dumps({**FOR_ARM, "image_reference": IMAGE}))
        command = [PLAYBOOK, str(playbook), "-e", f"@{variables}"]
        try:
            run(command, cwd=ROOT, env=controller.environment, timeout=BUILD_SECONDS).check()
            yield IMAGE
        finally:
            run(["docker", "--host", engine_host, "image", "rm", "--force", IMAGE]).check()


def test_the_programs_of_the_image_and_of_the_ssh_runtime_run(engine_host: str, image: str) -> None:
    started = ["docker", "--host", engine_host, "run", "--rm", "--network", "none", image]
    said = run([*started, "sh", "-c", PROOF]).check().text.splitlines()
    assert said[:2] == ["aarch64"] * 2
    assert said[-2:] == ["aarch64", "by SSH"]
