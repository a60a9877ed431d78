# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every command of docs/assistant.md as it is written there, on a session file that the page shows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import ROOT, Controller, run
from warm_playbook import stand_in

PAGE = (ROOT / "docs/assistant.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The page's commands, with the owner, the store and the addresses of the test, by a stand-in that imports nothing.
PROGRAM = """#!/bin/sh
exec {folder}/runs/ansible-playbook "$@" -e @{common}
"""


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


def environment(controller: Controller, place: Path) -> dict[str, str]:
    """That of a user in the checkout."""
    kept = {name: value for name, value in controller.environment.items() if name != "ANSIBLE_STDOUT_CALLBACK"}
    return {**kept, "PATH": f"{place}/bin{os.pathsep}{kept['PATH']}"}


@pytest.fixture
def checkout(engine_host: str, tmp_path: Path) -> Iterator[tuple[Path, Controller]]:
    """A directory like a checkout, with the files that the page names, and its controller."""
    artifacts = str(tmp_path / "own/home/.cluster-compute")
    controller = Controller(tmp_path / "own", engine_host, extra={"session_artifacts": artifacts})
    place = tmp_path / "checkout"
    (place / "bin").mkdir(parents=True)
    for name in ("playbooks", "inventory"):
        (place / name).symlink_to(ROOT / name)
    (place / "session.yml").write_text(blocks("yaml")[0])
    (place / "data.csv").write_text("1,2,3\n")
    (place / "bin/ansible-playbook").write_text(PROGRAM.format(folder=tmp_path, common=controller.common))
    (place / "bin/ansible-playbook").chmod(0o755)
    # As the page sets the inventory, which Ansible looks for in its working directory as it is imported.
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/inventory").symlink_to(ROOT / "inventory")
    settings = {**environment(controller, place), "ANSIBLE_INVENTORY": "inventory/local.yml"}
    try:
        with stand_in(tmp_path / "runs", settings):
            yield place, controller
    finally:
        controller.clean()


def test_the_page_has_commands_in_blocks_for_the_shell_only() -> None:
    assert {language for language, _text in BLOCK.findall(PAGE)} == {"sh", "yaml"}
    assert "ansible-playbook" not in BLOCK.sub("", PAGE)


def test_the_page_from_top_to_bottom(checkout: tuple[Path, Controller]) -> None:
    place, controller = checkout
    script = "".join(blocks("sh"))
    text = (
        run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=place, env=environment(controller, place), timeout=600)
        .check()
        .text
    )
    expected = (
        *("Session train: would be launched", "Session train: RUNNING", "[('train', 'RUNNING')]"),
        *("main1: 0 of 2, epochs: 3\nsub1: 1 of 2, epochs: 3\nsub1\n", "Session train: TERMINATED"),
    )
    places = [text.find(line) for line in expected]
    assert places == sorted(places), text
    assert -1 not in places, text
    copies = {str(path.relative_to(place)): path.read_text() for path in place.glob("results/*/*")}
    assert copies == {f"results/{name}/data.csv": "1,2,3\n" for name in ("main1", "sub1")}
    assert controller.engine() == {}
