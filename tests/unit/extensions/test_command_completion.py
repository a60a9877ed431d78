# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Completion of the command ``cluster-compute`` in shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cluster_compute.__main__ import main
from cluster_compute.verbs import VERBS
from command_samples import ROOT, session
from command_schema import checked

pytestmark = pytest.mark.usefixtures("home")


def completed(capsys: pytest.CaptureFixture[str], *before: str) -> list[str]:
    assert main(["completion", "words", "--", *before]) == 0
    return capsys.readouterr().out.split()


def test_words_complete_a_line(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    session(home, "train")
    assert [*VERBS, "--local"] == [word for word in completed(capsys) if word in VERBS or word == "--local"]
    assert completed(capsys, "--json", "ssh")[0] == "train"
    assert completed(capsys, "ssh", "train")[:2] == ["main1", "sub1"]
    assert completed(capsys, "open", "train")[:2] == ["lab", "open"]
    assert completed(capsys, "cp", "x")[0] == "train:"
    assert "--many" in completed(capsys, "down")
    assert completed(capsys, "hosts")[:3] == ["add", "ls", "provision"]


def test_bash_completes(home: Path) -> None:
    session(home, "train")
    script = f"""
    PATH={ROOT / "bin"}:$PATH
    eval "$(cluster-compute completion bash)"
    COMP_WORDS=(cluster-compute "$@") COMP_CWORD=$#
    _cluster_compute
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    for words, expected in (
        (["do"], ["down", "doctor"]),
        (["ssh", "tr"], ["train"]),
        (["ssh", "train", "su"], ["sub1"]),
    ):
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_scripts(capsys: pytest.CaptureFixture[str], shell: str, tmp_path: Path) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "completion words --" in script
    assert main(["completion", shell, "--json"]) == 0
    assert checked("completion", capsys.readouterr().out) == {"text": script}
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(script)
        subprocess.run([shell, "-n", str(file)], check=True)
