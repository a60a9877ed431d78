# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments that are built, chosen by name, and run a job over two containers: pytorch, with TensorBoard in a browser, and mpi."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import browser
import pytest
from controller import ROOT, Controller
from environments import NAME, copied, launched, said

EXAMPLES = ROOT / "examples"
HOSTS = ("main1", "sub1")


def test_tensorboard_shows_what_pytorch_has_written(controller: Controller, tmp_path: Path) -> None:
    session = launched(controller, "pytorch", session_apps=["tensorboard"])
    copied(controller, EXAMPLES / "pytorch" / "train.py")
    shown = said(session, "everywhere python3 train.py")
    sums = re.findall(r"rank (\d) of 2 on .*weights (\w+)", shown)
    assert {rank for rank, _sum in sums} == {"0", "1"}, shown
    assert len({weights for _rank, weights in sums}) == 1
    url = dict(line.split(" ", 1) for line in (session.folder / "apps").read_text().splitlines())["tensorboard"]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url.partition("/")[0] + "//" + url.split("/")[2] + "/", timeout=30)
    with browser.opened(tmp_path) as page:
        page.get(url + "#timeseries")
        text = "return document.body.innerText"
        browser.wait_for(page, lambda: "loss" in page.execute_script(text).split(), "the chart of the loss")
        browser.wait_for(page, lambda: page.find_elements("css selector", "scalar-card line-chart"), "its line")
        page.save_screenshot(str(tmp_path / "tensorboard.png"))
    controller.terminate(NAME).check()


def test_mpirun_starts_a_rank_in_each_container(controller: Controller) -> None:
    """A program in Python, and one that is compiled where it runs."""
    session = launched(controller, "mpi")
    for program in ("ring.py", "ring.c"):
        copied(controller, EXAMPLES / "mpi" / program)
    said(session, "everywhere mpicc ring.c -o ring")
    for program in ("python3 ring.py", "./ring"):
        shown = said(session, f"mpirun {program}")
        found = re.findall(r"^rank (\d) of 2 on (\S+): ring 1, all-reduce of 1000000: 0 wrong$", shown, re.MULTILINE)
        assert sorted(found) == [(str(rank), host) for rank, host in enumerate(HOSTS)], shown
    controller.terminate(NAME).check()
