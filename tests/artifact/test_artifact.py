# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of the built collection: everything that users need, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

# Each packed file matches this pattern.
ALLOWED = re.compile(
    r"""
    MANIFEST\.json | FILES\.json | LICENSE | (AGENTS|CODE_OF_CONDUCT|CONTRIBUTING|README|SECURITY)\.md | CHANGELOG\.(md|rst) | requirements\.txt
    | changelogs/(config|changelog)\.yaml
    | docs/[\w./-]+\.(json|md|png|rst|svg|yml)
    | examples/[\w./-]+
    | extensions/command/cluster_compute/\w+\.py | extensions/front_end/cluster_session\.py
    | extensions/grafana/cluster_compute\.json
    | extensions/patterns/\w+/(README\.md|meta/pattern\.json|playbooks/[\w.]+\.yml)
    | meta/(runtime|execution-environment)\.yml | meta/ee-(requirements|bindep)\.txt
    | playbooks/[\w./-]+\.(yml|j2|css|js)
    | plugins/(action|callback|doc_fragments|filter|inventory|module_utils|modules|plugin_utils)/(_?[a-z]+/)*\w+\.py
    | plugins/__init__\.py | plugins/filter/\w+\.yml
    | roles/(agent|image|ssh|timer)/(defaults|handlers|meta|tasks|vars)/\w+\.yml
    | roles/(agent|image|ssh|timer)/(files|templates)/[\w./-]+
    | roles/(agent|image|ssh|timer)/README\.md
    """,
    re.VERBOSE,
)

# The files that users need most.
REQUIRED = {
    "LICENSE",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.rst",
    "requirements.txt",
    "docs/architecture.svg",
    "extensions/command/cluster_compute/words.py",
    "extensions/front_end/cluster_session.py",
    "extensions/grafana/cluster_compute.json",
    "extensions/patterns/cluster_sessions/README.md",
    "extensions/patterns/cluster_sessions/meta/pattern.json",
    "extensions/patterns/cluster_sessions/playbooks/launch.yml",
    "meta/runtime.yml",
    "playbooks/inventory/local.yml",
    "playbooks/cluster_session.yml",
    "playbooks/provision_agents.yml",
    "playbooks/sessions.yml",
    "playbooks/terminate.yml",
    "plugins/modules/containers.py",
    "plugins/modules/agent_step.py",
    "plugins/modules/head_step.py",
    "roles/agent/meta/argument_specs.yml",
    "roles/image/meta/argument_specs.yml",
}


def _call(*command: str | Path, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """The collection as `ansible-galaxy collection build` makes it."""
    folder = tmp_path_factory.mktemp("artifact")
    _call("ansible-galaxy", "collection", "build", "--output-path", folder, folder=checkout)
    return next(folder.glob("cluster-compute-*.tar.gz"))


@pytest.fixture(scope="module")
def members(archive: Path) -> set[str]:
    """The names of the files in the archive."""
    with tarfile.open(archive) as tar:
        return {member.name for member in tar.getmembers() if not member.isdir()}


def test_the_archive_holds_allowed_files_only(members: set[str]) -> None:
    assert sorted(name for name in members if not ALLOWED.fullmatch(name)) == []


def test_the_archive_holds_every_required_file(members: set[str]) -> None:
    assert sorted(REQUIRED - members) == []


def test_the_archive_holds_exactly_the_tracked_content(members: set[str], checkout: Path) -> None:
    tracked = set(_call("git", "ls-files", folder=checkout).split())
    shipped = ("plugins/", "roles/", "playbooks/", "meta/", "examples/")
    # The link with which a checkout works from any directory.
    content = {name for name in tracked if name.startswith(shipped) and not (checkout / name).is_symlink()}
    made = {"MANIFEST.json", "FILES.json"}
    assert sorted(content - members) == []
    assert sorted(members - made - tracked) == []


def test_the_archive_is_smaller_than_2_mb(archive: Path) -> None:
    assert archive.stat().st_size < 2_000_000


def test_the_archive_installs_and_its_content_is_found_by_full_names(
    archive: Path, checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.cfg").touch()
    where = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "ANSIBLE_CONFIG": str(tmp_path / "empty.cfg")}
    _call("ansible-galaxy", "collection", "install", "--offline", "-p", tmp_path, archive, folder=tmp_path, **where)
    described = json.loads(_call("ansible-doc", "--metadata-dump", "cluster.compute", folder=tmp_path, **where))["all"]
    modules = {f"cluster.compute.{path.stem}" for path in (checkout / "plugins/modules").glob("*.py")}
    roles = {f"cluster.compute.{path.name}" for path in (checkout / "roles").iterdir()}
    assert (set(described["module"]), set(described["role"])) == (modules, roles)
    others = [list(described[kind]) for kind in ("callback", "filter", "inventory")]
    assert others == [["cluster.compute.progress"], ["cluster.compute.owner_from_login"], ["cluster.compute.sessions"]]
    play = ("ansible-playbook", "--syntax-check", "-i", "localhost,", "cluster.compute.cluster_session")
    _call(*play, folder=tmp_path, **where)
