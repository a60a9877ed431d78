# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Completion of ``cluster-compute`` in zsh and fish themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import ROOT
from terminal import Terminal
from typed_command import session

EXPECTED = {"do": {"doctor", "down"}, "ssh tr": {"train"}, "ssh train su": {"sub1"}, "down --ma": {"--many"}}


@pytest.fixture
def environment(tmp_path: Path) -> list[str]:
    """A home with the files of a session, as the words that begin a command."""
    session(tmp_path, "train")
    return ["env", f"HOME={tmp_path}", f"PATH={ROOT}/bin:/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"]


def test_fish_completes(environment: list[str]) -> None:
    for typed, expected in EXPECTED.items():
        script = f"cluster-compute completion fish | source; complete -C 'cluster-compute {typed}'"
        done = subprocess.run(
            [*environment, "fish", "--no-config", "-c", script], check=True, capture_output=True, text=True, timeout=120
        )
        assert set(done.stdout.split()) == expected


@pytest.fixture
def zsh(environment: list[str]) -> Iterator[Terminal]:
    terminal = Terminal([*environment, "PS1=%{\x1b]0;ready %! %?\x07%}$ ", "zsh", "-f", "-i"])
    terminal.type(
        "autoload -U compinit; compinit -u -D; source <(cluster-compute completion zsh); zle_highlight=(none)"
    )
    try:
        yield terminal
    finally:
        terminal.close()


def test_zsh_completes(zsh: Terminal) -> None:
    """Of several words that fit, Tab shows a list. A single one it writes, with a space."""
    zsh.press("cluster-compute do\t\t", r"doctor +down")
    for typed, [word] in ((typed, expected) for typed, expected in EXPECTED.items() if len(expected) == 1):
        zsh.press(f"\x15cluster-compute {typed}\t", rf"{typed[-2:]}.*{word[len(typed.split()[-1]) :]} ")
