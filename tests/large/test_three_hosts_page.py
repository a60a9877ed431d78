# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare Debian 13 as controller and three Docker hosts: the commands of README.md and of docs/start_three_hosts.md, typed into a terminal.

PICTURES=DIRECTORY keeps what the terminal has shown: recordings of a login, a notebook and trainings, and the launch as a picture.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import environments
import pytest
import yaml
from agents_lab import NAMES, Lab
from controller import ROOT, run
from newcomer import Newcomer, checkout, newcomer_on
from terminal import PROMPT, Terminal
from terminal_picture import svg

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

URL = "https://github.com/cluster-compute/cluster.compute"
HOME = "/root/tutorial"
BLOCK = re.compile(r"^```(?:text|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = "/srv/shared"


@dataclass(frozen=True)
class Place:
    """Where the user types, and the three hosts."""

    lab: Lab
    controller: Newcomer
    terminal: Terminal

    def lines(self, page: str) -> list[str]:
        """The lines of all blocks of a page, with these hosts in place of the hosts of the page."""
        text = (ROOT / page).read_text(encoding="utf-8").replace(" -K\n", "\n").replace("alice@", "admin@")
        for number, agent in enumerate(NAMES, start=11):
            text = text.replace(f"192.0.2.{number}", self.lab.address(agent))
        return "".join(BLOCK.findall(text)).splitlines()

    def files(self, page: str) -> list[str]:
        """The session files of a page."""
        return re.findall(r"^```yaml\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    def write(self, name: str, text: str) -> None:
        self.terminal.paste(f"cat > {name} << 'EOF'\n{text}EOF")

    def record(self, name: str, title: str) -> None:
        folder = os.environ.get("PICTURES")
        if folder:
            self.terminal.save(Path(folder, name), title)

    def line(self, page: str, beginning: str) -> str:
        """The one line that begins like this."""
        [found] = [line for line in self.lines(page) if line.startswith(beginning)]
        return found


@pytest.fixture(scope="module")
def lab(engine_host: str) -> Iterator[Lab]:
    """Three hosts with an engine and the reference image, and nothing else of the collection; they share a directory of user 1000."""
    made = Lab("three_hosts", ["bookworm"])
    try:
        made.make_hosts()
        made.shell(NAMES[0], f"chown 1000:1000 {FOLDER}").check()
        yield made
    finally:
        made.destroy()


@pytest.fixture(scope="module")
def environment(engine_host: str, lab: Lab) -> str:
    """The environment of the tutorial on the first host: its build takes the PyTorch that this machine's pip finds."""
    with contextlib.closing(docker.APIClient(engine_host)) as client:
        environments.make(client, "pytorch")
    [name] = [
        tag
        for tag in run(["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]).check().text.split()
        if "/pytorch:" in tag
    ]
    pipe = f"docker save {name} | docker exec -i {lab.container(NAMES[0])} docker load"
    run(["bash", "-o", "pipefail", "-c", pipe], timeout=900).check()
    return name


@pytest.fixture(scope="module")
def place(lab: Lab) -> Iterator[Place]:
    """A user with a key for the hosts, and a mirror of the repository in place of its address."""
    with newcomer_on("trixie", ["--network", lab.name]) as controller:
        controller.prepare()
        mirror = "/srv/mirror"
        controller.type(f"mkdir -p {mirror}/cluster.compute ~/.ssh").check()
        controller.write(f"{mirror}/cluster.compute", checkout())
        git = "git -c user.name=A -c user.email=a@example.org"
        controller.type(f"cd {mirror}/cluster.compute; git init -q; git add .; {git} commit -qm A").check()
        controller.type(f"git config --global url.file://{mirror}/.insteadOf {URL.rpartition('/')[0]}/").check()
        for name, file in (("id_agents", "id_ed25519"), ("known_hosts", "known_hosts")):
            run(["docker", "cp", str(lab.folder / name), f"{controller.name}:/root/.ssh/{file}"]).check()
        controller.type("chown -R 0:0 ~/.ssh; chmod 700 ~/.ssh").check()
        shell = ["-w", "/root", "-e", f"PS1={PROMPT}", "-e", "TERM=xterm-256color", controller.name, "bash", "--norc"]
        terminal = Terminal(["docker", "exec", "-it", *shell])
        try:
            yield Place(lab, controller, terminal)
        finally:
            terminal.close()


def test_five_commands_from_the_clone_to_a_login_over_two_hosts(place: Place) -> None:
    begin = place.lines("README.md").index(f"git clone {URL} && cd cluster.compute")
    *typed, listed, everywhere, end = place.lines("README.md")[begin : begin + 8]
    shown = [place.terminal.type(line) for line in typed]
    assert "Session work: RUNNING (cluster session, multi-node)" in shown[3]
    assert shown[4].splitlines()[1] == "sub1"
    place.record("three_hosts.cast", "From git clone to a login over two hosts")
    table = place.terminal.type(listed)
    assert re.search(r"work +root +RUNNING", table)
    folder = os.environ.get("PICTURES")
    if folder:
        Path(folder, "terminal.svg").write_text(svg(f"$ {shown[3]}{shown[4]}{table}", place.terminal.columns))
    assert set(re.findall(r"^(main1|sub1|sub2): (?=\1)", place.terminal.type(everywhere), re.MULTILINE)) == {
        "main1",
        "sub1",
        "sub2",
    }
    containers = json.loads(place.controller.type("cat ~/.cluster-compute/work/session.json").text)["containers"]
    assert {container["agent"] for container in containers} == {place.lab.address(agent) for agent in NAMES}
    assert "Session work: TERMINATED" in place.terminal.type(end)


TUTORIAL = "docs/start_three_hosts.md"
LOSS = r"rank (\d) of 3 on (main1|sub1|sub2): loss 0\.0\d+"
RANKS = [("0", "main1"), ("1", "sub1"), ("2", "sub2")]


def ranks(text: str) -> list[tuple[str, str]]:
    """The ranks that have written a small loss."""
    return sorted(re.findall(LOSS, text))


@pytest.mark.usefixtures("environment")
def test_the_tutorial_from_the_hosts_to_a_notebook_and_trainings(place: Place) -> None:
    """Everything but step 3, the build of the image."""
    terminal, typed = place.terminal, iter(place.lines(TUTORIAL))
    train, batch = place.files(TUTORIAL)

    def next_line(beginning: str) -> str:
        return next(line for line in typed if line.startswith(f"cluster-compute {beginning}"))

    terminal.type(f"mkdir {HOME} && cd {HOME}")
    terminal.begin()
    for line in place.lines("docs/start_one_machine.md")[:4]:
        terminal.type(line)
    terminal.type(next_line("hosts add"))
    terminal.type(next_line("doctor"))
    place.write("train.yml", train)
    assert "Session train: would be launched" in terminal.type(next_line("up train.yml --check"))
    assert "Session train: RUNNING" in terminal.type(next_line("up train.yml"))
    url = terminal.press(next_line("open train jupyterlab") + "\r", r"http://127\.0\.0\.1:\d+/lab\?token=\w+")
    page = f"import urllib.request; print(urllib.request.urlopen({url!r}).read())"
    assert "JupyterLab" in place.controller.type(f"python3 -c {shlex.quote(page)}").check().text
    place.record("notebook.cast", "From git clone to a notebook on three hosts")
    terminal.interrupt()
    terminal.begin()
    terminal.type(next_line("cp --on main1"))
    assert ranks(terminal.type(next_line("exec train"))) == RANKS
    place.lab.shell(NAMES[2], f"test -s {FOLDER}/model.pt && rm {FOLDER}/model.pt").check()
    terminal.type(next_line("ls"))
    # These hosts have room for one session of this size.
    terminal.type("cluster-compute down train")
    place.write("train-batch.yml", yaml.safe_dump({**yaml.safe_load(train), **yaml.safe_load(batch)}))
    terminal.type("cluster-compute up train-batch.yml")
    # One line of each rank, in any order.
    shown = terminal.press(next_line("logs train-batch -f") + "\r", f"(?s).*?(?:{LOSS}.*?){{3}}")
    assert ranks(shown) == RANKS
    terminal.interrupt()
    why = next_line("why train-batch")
    assert wait_until(lambda: "the command ended with exit code 0" in terminal.type(why), deadline_in(120))
    place.lab.shell(NAMES[2], f"test -s {FOLDER}/model.pt").check()
    place.record("torchrun.cast", "A training by torchrun over three hosts, then as a batch job")
    terminal.type("cluster-compute down train-batch", code=0)
