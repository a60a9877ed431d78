# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of docs/frameworks.md: each framework finds the containers of a session, and computes over all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import example_images
import pytest
import yaml
from controller import ROOT, Controller, Session, run

HOSTS = ("main1", "sub1")
SESSION = {
    "session_cluster_size": 2,
    "session_cluster_mode": "multi-node",
    "session_cpus": "0.9",
    "session_memory": "2g",
    "session_shm": "256m",
    "session_torchrun": "static",
    "session_launch_timeout": 900,
}
FETCH = (
    "python -c \"from deepspeed.launcher.runner import fetch_hostfile; print(dict(fetch_hostfile('/job/hostfile')))\""
)

DISCOVER = (
    'PYTHONPATH=/horovod:/horovod/horovod-0.28.1 python -c "from horovod.runner.elastic.discovery import HostDiscoveryScript; '
    "print(sorted(HostDiscoveryScript('discover_hosts', 1).find_available_hosts_and_slots().items()))\""
)


@pytest.fixture(scope="module")
def controller(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    made = Controller(tmp_path_factory.mktemp("frameworks") / "own", engine_host)
    try:
        yield made
    finally:
        made.clean()


@pytest.fixture(scope="module")
def horovod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of Horovod, whose launcher is pure Python, with what the launcher imports. Its libraries need a compiler."""
    folder = tmp_path_factory.mktemp("horovod")
    for arguments in (
        ["download", "--dest", str(folder), "horovod==0.28.1"],
        ["install", "--target", str(folder), "cloudpickle"],
    ):
        subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments, "--no-deps"], check=True, timeout=600)
    subprocess.run(["tar", "-C", folder, "-xzf", folder / "horovod-0.28.1.tar.gz"], check=True, timeout=600)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def session(controller: Controller, horovod: Path) -> Iterator[Session]:
    """Two containers of the image of all frameworks."""
    image = example_images.build(controller.client, "frameworks")
    mount = {"source": str(horovod), "target": "/horovod", "mode": "ro"}
    yield controller.launched("frameworks", session_image=image, session_mounts=[mount], **SESSION)
    controller.terminate("frameworks").check()


def said(session: Session, command: str) -> list[str]:
    """The lines of the programs of a command on main1, sorted."""
    # DeepSpeed compiles a part of itself.
    text = run(["ssh", "-F", session.config, "main1", command], timeout=900).check().text
    found = [
        match[1] for match in re.finditer(r"(?:^|: )((?:jax|lightning|accelerate|deepspeed): .*)$", text, re.MULTILINE)
    ]
    assert len(found) == 2, text
    return sorted(found)


def test_deepspeed_reads_the_hosts(session: Session) -> None:
    assert session.say("main1", FETCH).splitlines()[-1] == "{'main1': 1, 'sub1': 1}"


def test_deepspeed_starts_its_processes_without_an_option(session: Session) -> None:
    assert said(session, "deepspeed /usr/local/bin/deepspeed_sum.py") == [
        f"deepspeed: rank {rank} of 2 on {host}, sum 3" for rank, host in enumerate(HOSTS)
    ]


def test_horovod_discovers_the_hosts(session: Session) -> None:
    assert session.say("main1", DISCOVER).splitlines()[-1] == "[('main1', 1), ('sub1', 1)]"


@pytest.mark.parametrize("command", ["mpirun jax_sum.py", "everywhere jax_sum.py"])
def test_jax_sums_over_all_processes(session: Session, command: str) -> None:
    """Without an argument under mpirun; with the three arguments from the session's variables otherwise."""
    assert said(session, command) == [f"jax: process {rank} of 2, 2 devices, sum 3" for rank in (0, 1)]


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("everywhere torchrun /usr/local/bin/lightning_fit.py", "TorchElasticEnvironment"),
        ("everywhere 'LOCAL_RANK=0 lightning_fit.py'", "LightningEnvironment"),
    ],
)
def test_lightning_detects_its_environment(session: Session, command: str, environment: str) -> None:
    lines = said(session, command)
    for rank, line in enumerate(lines):
        assert line.startswith(f"lightning: rank {rank} of 2 on {HOSTS[rank]} by {environment}: "), lines
    assert len({line.partition("y = ")[2] for line in lines}) == 1, "the ranks share the line"


@pytest.mark.parametrize("launcher", ["accelerate launch --cpu", "torchrun"])
def test_accelerate_sums_over_all_processes(session: Session, launcher: str) -> None:
    assert said(session, f"everywhere {launcher} /usr/local/bin/accelerate_sum.py") == [
        f"accelerate: process {rank} of 2 on {host}, MULTI_CPU, sum 3" for rank, host in enumerate(HOSTS)
    ]


@pytest.mark.parametrize("example", ["dask", "ray"])
def test_the_workers_are_the_subs(controller: Controller, example: str) -> None:
    settings = yaml.safe_load((ROOT / "examples" / example / "session.yml").read_text())
    image = example_images.build(controller.client, example)
    command = controller.command("cluster_session", "-e", f"@examples/{example}/session.yml", session_image=image)
    run(command, cwd=ROOT, env=controller.environment, timeout=900).check()
    logs = controller.play("session_logs", session_name=settings["session_name"]).check().text
    assert "4203 primes below 40000, counted by sub1, sub2" in logs
    controller.terminate(settings["session_name"]).check()
