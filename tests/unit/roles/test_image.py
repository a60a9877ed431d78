# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions and scripts of the role image."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from expressions import evaluated, rendered

ROLE = Path(__file__).resolve().parents[3] / "roles" / "image"
TASKS = ROLE / "tasks"


def test_a_build_gets_its_base_and_the_arguments_of_the_user() -> None:
    tasks = yaml.safe_load((TASKS / "environment.yml").read_text())
    build = next(
        task for block in tasks for task in block.get("block", ()) if task["name"].startswith("Build the image from")
    )
    expression = build["cluster.compute.agent_step"]["params"]["build_arguments"]
    given = {"image_build_arguments": {"PIP_NO_INDEX": "1"}, "__image_environment": {"base": "reference:1"}}
    assert evaluated(expression, **given) == {"BASE": "reference:1", "PIP_NO_INDEX": "1"}


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
    given = {"__image_apt": {"stdout": "\n".join(lines), "stdout_lines": lines}}
    assert rendered("image", "__image_apt_proxy", **given) == proxy
    assert rendered("image", "__image_apt_options", **given) == options


MIRROR = "deb http://mirror.example.com/debian/"
OTHERS = (
    "Debian Backports %s trixie-backports main trixie-backports" % MIRROR,
    "Example deb http://packages.example.com/ trixie main trixie",
    "",
)


@pytest.mark.parametrize(
    ("distribution", "release", "lines", "suite", "sources"),
    [
        (
            "Debian",
            "trixie",
            [
                f"Debian {MIRROR} trixie main trixie",
                f"Debian {MIRROR} trixie main trixie",
                f"Debian {MIRROR} trixie-updates main trixie-updates",
                f"Debian {MIRROR} sid main sid",
            ],
            "trixie",
            [f"{MIRROR} trixie main", f"{MIRROR} trixie-updates main"],
        ),
        # A suite may have the name of its part in the release process.
        ("Debian", "trixie", [f"Debian {MIRROR} stable main trixie"], "trixie", [f"{MIRROR} stable main"]),
        ("Debian", "trixie", [f"Debian {MIRROR} oldstable main bookworm"], "trixie", []),
        # unstable has the release name of testing in /etc/os-release, and sources of its own.
        ("Debian", "forky", [f"Debian {MIRROR} sid main sid"], "sid", [f"{MIRROR} sid main"]),
        ("Debian", "forky", [f"Debian {MIRROR} unstable main sid"], "sid", [f"{MIRROR} unstable main"]),
        (
            "Debian",
            "forky",
            [f"Debian {MIRROR} sid main sid", f"Debian {MIRROR} testing main forky"],
            "forky",
            [f"{MIRROR} testing main"],
        ),
        ("Ubuntu", "noble", [f"Ubuntu {MIRROR} noble-updates main noble"], "noble", [f"{MIRROR} noble-updates main"]),
        # An index without a code name.
        ("Debian", "trixie", [f"Debian {MIRROR} trixie main "], "trixie", [f"{MIRROR} trixie main"]),
    ],
)
def test_a_build_uses_the_sources_of_the_distribution_itself(
    distribution: str, release: str, lines: list[str], suite: str, sources: list[str]
) -> None:
    """mmdebstrap looks for the essential packages in the suite, which has the code name that its index has."""
    facts = {"distribution": distribution, "distribution_release": release}
    given = {"ansible_facts": facts, "__image_targets": {"stdout_lines": [*OTHERS, *lines]}}
    assert (rendered("image", "__image_suite", **given), rendered("image", "__image_sources", **given)) == (
        suite,
        sources,
    )


def test_another_content_of_the_reference_image_is_another_version(tmp_path: Path) -> None:
    """The label of an image says what it was made from, so that an agent with an older image gets a new one."""
    copy = tmp_path / "image"
    files = copy / "files"
    files.mkdir(parents=True)
    for name in ("make_runtime.sh", "applets"):
        (files / name).write_bytes((ROLE / "files" / name).read_bytes())
    other = tmp_path / "other/image"
    shutil.copytree(copy, other)
    (other / "files/applets").write_text("sh\n")
    hosts = {name: {"role_path": str(path)} for name, path in {"own": ROLE, "copy": copy, "other": other}.items()}
    found = versions(
        tmp_path, {**hosts, "packages": {"role_path": str(ROLE), "__image_packages": {"Debian": ["bash"]}}}
    )
    assert re.fullmatch("[0-9a-f]{16}", found["own"])
    assert found["own"] == found["copy"]
    assert len(set(found.values())) == 3


def versions(folder: Path, hosts: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The version for each host: all in one run, because Ansible takes long to start."""
    (folder / "group_vars").mkdir()
    (folder / "group_vars/all.yml").symlink_to(ROLE / "vars/main.yml")
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    program = str(Path(sys.executable).with_name("ansible"))
    command = [program, "all", "-i", "hosts.yml", "-m", "ansible.builtin.debug", "-a", "msg=<{{ __image_version }}>"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return dict(re.findall(r"^(\w+) \| SUCCESS.*?<(\w*)>", done.stdout, re.MULTILINE | re.DOTALL))


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


def test_a_command_that_fills_the_disk_of_its_container_has_an_exit_code(tmp_path: Path) -> None:
    """Without room of its own, the file would be empty, and the code 255: a program that the command left takes all that is free."""
    found = re.search(r"^run_restarted\(\) \{.*?^\}$", (ROLE / "files/init.sh").read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    script = f"""
        mount -t tmpfs -o size=16k none {tmp_path} || exit 77
        state={tmp_path} config=/nowhere
        run_command() {{
            cat /dev/zero 2>/dev/null >"$state/data"
            while :; do cat /dev/zero 2>/dev/null >>"$state/data"; done &
            code=3 ran_out=
        }}
        {found.group()}
        run_restarted
        kill $!
        cat "$state/exit_code"
    """
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script], check=False, capture_output=True, text=True
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this user cannot mount a file system in a namespace")
    assert done.stdout.split() == ["3"]
