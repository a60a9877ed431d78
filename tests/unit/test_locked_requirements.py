# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` and the images of environments install has a known content: each package has one version and digests of its files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENVIRONMENTS = "roles/image/files/environments"
NAMES = ("code", "lab", "pytorch", "tensorflow")
# Each lock with the files that it was made from.
LOCKS = {
    "requirements.lock": ["requirements.txt"],
    "requirements-dev.lock": ["requirements.txt", "requirements-dev.txt"],
    "tests/requirements/uv.lock": ["tests/requirements/uv.txt"],
    **{f"{ENVIRONMENTS}/{name}/requirements.lock": [f"{ENVIRONMENTS}/{name}/requirements.txt"] for name in NAMES},
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
ENTRY = re.compile(r"[\w.-]+==[\w.]+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+")


def entries(path: Path) -> list[str]:
    """The requirements of a file, each with its digests in one line."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def installed(path: Path, python: str, machine: str) -> dict[str, str]:
    """The version of each package that a lock installs on Linux."""
    environment = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": python + ".0",
        "python_version": python,
        "sys_platform": "linux",
    }
    wanted = [Requirement(entry.partition(" --hash")[0]) for entry in entries(path)]
    chosen = [one for one in wanted if one.marker is None or one.marker.evaluate(environment)]
    versions = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in chosen}
    assert len(versions) == len(chosen), "a package has two versions"
    return versions


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_a_version_and_digests_and_no_address(lock: str, checkout: Path) -> None:
    for entry in entries(checkout / lock):
        assert ENTRY.fullmatch(entry), entry
        assert not re.search(r"https?:|^-", entry), entry


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_what_its_requirements_ask_for(lock: str, python: str, checkout: Path) -> None:
    for machine in MACHINES:
        versions = installed(checkout / lock, python, machine)
        for source in LOCKS[lock]:
            for line in entries(checkout / source):
                wanted = Requirement(line)
                found = versions.get(canonicalize_name(wanted.name), "")
                assert wanted.specifier.contains(found, prereleases=True), f"{source}: {line}: {found}; run make lock"


def test_every_environment_with_packages_installs_them_by_digest(checkout: Path) -> None:
    files = sorted((checkout / ENVIRONMENTS).glob("*/Dockerfile"))
    assert [file.parent.name for file in files if "pip install" in file.read_text(encoding="utf-8")] == list(NAMES)
    for name in NAMES:
        text = (checkout / ENVIRONMENTS / name / "Dockerfile").read_text(encoding="utf-8")
        assert "ARG REQUIREMENTS=requirements.lock\n" in text
        assert re.findall(r" -r (\S+)", text) == ['"$REQUIREMENTS"']


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lab"])
def test_an_environment_has_the_versions_of_the_environment_that_it_extends(name: str, checkout: Path) -> None:
    for python in PYTHONS:
        lab, own = (
            installed(checkout / ENVIRONMENTS / each / "requirements.lock", python, MACHINES[0])
            for each in ("lab", name)
        )
        assert {one: own[one] for one in lab.keys() & own.keys()} == {one: lab[one] for one in lab.keys() & own.keys()}


def test_make_installs_its_own_environment_by_digest(checkout: Path) -> None:
    text = (checkout / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^BY_DIGEST := .*--require-hashes$", text, re.MULTILINE)
    installs = [line.strip() for line in text.splitlines() if line.startswith("\t") and " -r " in line]
    assert [line for line in installs if "BY_DIGEST" not in line] == ["@.cache/$*/$(PIP) -r $<"]
    assert ".venv/.ready: requirements.lock\n" in text
    assert ".venv/.tested: .venv/.ready requirements-dev.lock\n" in text
