# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions and scripts of the role image."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLE = Path(__file__).resolve().parents[3] / "roles" / "image"
TASKS = ROLE / "tasks"


def test_a_build_gets_its_base_and_the_arguments_of_the_user() -> None:
    tasks = yaml.safe_load((TASKS / "environment.yml").read_text())
    build = next(
        task for block in tasks for task in block.get("block", ()) if task["name"].startswith("Build the image from")
    )
    expression = trusted(build["cluster.compute.image_build"]["build_arguments"])
    given = {"image_build_arguments": {"PIP_NO_INDEX": "1"}, "__image_environment": {"base": "reference:1"}}
    rendered = Templar(loader=DataLoader(), variables=given).template(expression)
    assert rendered == {"BASE": "reference:1", "PIP_NO_INDEX": "1"}


@pytest.mark.parametrize(
    ("lines", "proxy", "options"),
    [
        ([], {}, []),
        (["Acquire::http::Proxy "], {}, []),
        (["Acquire::http::Proxy http://proxy:3142"], {"http_proxy": "http://proxy:3142"}, []),
        (["Acquire::Check-Valid-Until false"], {}, ['--aptopt=Acquire::Check-Valid-Until "false"']),
        (
            ["Acquire::http::Proxy http://proxy:3142", "Acquire::Check-Valid-Until false"],
            {"http_proxy": "http://proxy:3142"},
            ['--aptopt=Acquire::Check-Valid-Until "false"'],
        ),
    ],
)
def test_a_build_uses_the_proxy_of_the_host_and_accepts_the_same_indexes(
    lines: list[str], proxy: dict[str, str], options: list[str]
) -> None:
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    given = {"__image_apt": {"stdout": "\n".join(lines), "stdout_lines": lines}}
    templar = Templar(loader=DataLoader(), variables=given)
    assert templar.template(trusted(variables["__image_apt_proxy"])) == proxy
    assert templar.template(trusted(variables["__image_apt_options"])) == options


def test_another_content_of_the_reference_image_is_another_version(tmp_path: Path) -> None:
    """The label of an image says what it was made from, so that an agent with an older image gets a new one."""
    files = tmp_path / "files"
    files.mkdir()
    for name in ("make_runtime.sh", "applets"):
        (files / name).write_bytes((ROLE / "files" / name).read_bytes())
    own, copied = version_of(ROLE), version_of(tmp_path)
    assert own == copied
    assert re.fullmatch("[0-9a-f]{16}", own)
    (files / "applets").write_text("sh\n")
    assert version_of(tmp_path) != own
    assert version_of(ROLE, packages={"Debian": ["bash"]}) != own


def version_of(role: Path, packages: dict[str, list[str]] | None = None) -> str:
    variables = {"role_path": str(role), **({"__image_packages": packages} if packages else {})}
    program = str(Path(sys.executable).with_name("ansible"))
    shown = ["localhost", "-m", "ansible.builtin.debug", "-a", "msg=<{{ __image_version }}>"]
    command = [program, *shown, "-e", f"@{ROLE}/vars/main.yml", "-e", json.dumps(variables)]
    done = subprocess.run(command, cwd=ROLE.parents[1], check=True, capture_output=True, text=True)
    return done.stdout.partition("<")[2].partition(">")[0]


def trusted(expression: str) -> str:
    """The expression as one of a playbook, which ansible-core marks since 2.19."""
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return expression
    marked: str = trust_as_template(expression)
    return marked


@pytest.mark.parametrize(("programs", "bans"), [(("sshd",), True), (("sshd", "sshd-session", "sshd-auth"), False)])
def test_an_sshd_that_bans_addresses_bans_none(programs: tuple[str, ...], bans: bool, tmp_path: Path) -> None:
    """All clients of a published port can have the address of the gateway, that of the owner included."""
    found = re.search(r"^run_sshd\(\) \{.*?^\}$", (ROLE / "files/init.sh").read_text(), re.DOTALL | re.MULTILINE)
    assert found
    (tmp_path / "libexec").mkdir()
    for name in programs:
        (tmp_path / "libexec" / name).write_text('#!/bin/sh\necho "$@"\n')
        (tmp_path / "libexec" / name).chmod(0o755)
    script = f"runtime={tmp_path}\nsshd_settings() {{ echo settings; }}\n{found.group()}\nrun_sshd\n"
    said = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=60).stdout
    assert said.startswith("-D -e -f settings")
    assert ("-o PerSourcePenalties=no" in said) != bans
