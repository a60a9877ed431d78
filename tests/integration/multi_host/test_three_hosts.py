# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of examples/three_hosts/README.md, over three hosts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents_lab import NAMES, REFERENCE, Agents
from controller import PLAYBOOK, ROOT, Session, run

EXAMPLE = ROOT / "examples/three_hosts"
# The hosts of the lab are agents already, and the image with PyTorch has 5.2 GB.
PREPARED = ("provision_agents", "build_environments")
# Stand-ins for PyTorch and JupyterLab, which tests of one host run: torchrun shows what it is given.
TORCHRUN = """\
#!/bin/sh
echo "rank $PET_NODE_RANK of ${PET_NNODES#*:} at $PET_MASTER_ADDR: $(sha256sum <"$1")"
"""
STAND_IN = {
    "versions": {"1": REFERENCE},
    "apps": [{"name": "jupyterlab", "port": 8888, "command": 'exec python3 -m http.server "$APP_PORT"', "ready": "/"}],
    "environment": {"PATH": "/data/bin:/usr/local/bin:/usr/bin:/bin"},
}


@pytest.fixture
def shared(agents: Agents) -> Iterator[Path]:
    """The directory that the hosts share, with the stand-in for torchrun; it is empty again after the test."""
    folder = agents.lab.folder / "shared"
    folder.chmod(0o777)
    (folder / "bin").mkdir()
    (folder / "bin/torchrun").write_text(TORCHRUN)
    (folder / "bin/torchrun").chmod(0o755)
    try:
        yield folder
    finally:
        run(["rm", "-r", str(folder / "bin"), str(folder / "train.py")])


@pytest.fixture
def say(agents: Agents) -> Callable[[str], str]:
    """A function that runs a command of the page with the hosts, the owner and the environment of this test."""
    stand_in = agents.folder / "stand_in.json"
    stand_in.write_text(json.dumps({"session_environments": {"pytorch": STAND_IN}}))
    (agents.home / ".cluster-compute").symlink_to(agents.artifacts)
    hosts = ",".join(path for path in agents.lab.inventories if path != "-i")
    play = f'ansible-playbook() {{ {PLAYBOOK} "$@" -e @{agents.common} -e @{stand_in}; }}'

    def run_command(command: str) -> str:
        environment = {**agents.environment, "ANSIBLE_INVENTORY": hosts}
        return run(["bash", "-c", f"{play}\n{command}"], cwd=ROOT, env=environment).check().text

    return run_command


def commands() -> dict[str, str]:
    """The commands of the page, by the playbook or the program."""
    (block,) = re.findall(
        r"^```sh\nexport ANSIBLE_INVENTORY=\S+\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.M | re.S
    )
    return {re.sub(r"^ansible-playbook playbooks/|\W.*", "", line): line for line in block.splitlines()}


def test_a_notebook_and_a_training_over_three_hosts(agents: Agents, shared: Path, say: Callable[[str], str]) -> None:
    page = {name: line for name, line in commands().items() if name not in PREPARED}
    assert list(page) == ["cluster_session", "cat", "session_copy", "ssh", "terminate"]
    assert "Session train: RUNNING (cluster session, multi-node)" in say(page["cluster_session"])
    document = Session(agents, "train").document
    assert [container["agent"] for container in document["containers"]] == list(NAMES)
    assert re.fullmatch(r"jupyterlab http://127\.0\.0\.1:\d+/\?token=\w+\n", say(page["cat"]))
    say(page["session_copy"])
    digest = hashlib.sha256((EXAMPLE / "train.py").read_bytes()).hexdigest()
    ranks = enumerate(("main1", "sub1", "sub2"))
    assert sorted(say(page["ssh"]).splitlines()) == [
        f"{name}: rank {rank} of 3 at main1: {digest}  -" for rank, name in ranks
    ]
    say(page["terminate"])
    assert not any(agents.held().values())
    assert (shared / "train.py").read_text() == (EXAMPLE / "train.py").read_text()
