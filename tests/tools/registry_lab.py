# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A private image registry on this machine with a single user. Everything of it is removed afterwards."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bcrypt
import yaml
from docker.errors import ImageNotFound
from servers import free_port, serving


@dataclass(frozen=True)
class Registry:
    """The address of the registry and its credentials."""

    address: str
    username: str
    password: str

    @property
    def auth(self) -> dict[str, str]:
        return {"username": self.username, "password": self.password}

    def hold(self, client: Any, image: str, name: str) -> str:
        """Push an image of the engine under a name, remove that name from the engine, and return the digest."""
        repository, tag = f"{self.address}/{name.partition(':')[0]}", name.partition(":")[2]
        client.tag(image, repository, tag, force=True)
        output = client.push(repository, tag=tag, auth_config=self.auth)
        found = client.inspect_image(f"{repository}:{tag}")["RepoDigests"]
        digests = [name.partition("@")[2] for name in found if name.startswith(repository + "@")]
        assert digests, output
        self.forget(client, name)
        return str(digests[0])

    def forget(self, client: Any, name: str) -> None:
        """Remove all names of an image of this registry from the engine."""
        repository = f"{self.address}/{name.partition(':')[0]}"
        known = [each for image in client.images(repository) for each in _names(image)]
        for each in known:
            if each.startswith((repository + ":", repository + "@")) and "<none>" not in each:
                with contextlib.suppress(ImageNotFound):  # the last tag takes the digest with it
                    client.remove_image(each, force=True)


def _names(image: dict[str, Any]) -> list[str]:
    """The tags and digests of an image."""
    return [*(image["RepoTags"] or []), *(image["RepoDigests"] or [])]


def _program(folder: Path) -> str:
    """The path of the registry's program: installed, or extracted from Debian's package."""
    found = shutil.which("docker-registry")
    if found:
        return found
    folder.chmod(0o755)
    subprocess.run(["apt-get", "download", "-qq", "docker-registry"], cwd=folder, check=True, capture_output=True)
    package = next(folder.glob("docker-registry_*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "root")], check=True)
    return str(folder / "root/usr/bin/docker-registry")


@contextlib.contextmanager
def registry(username: str, password: str) -> Iterator[Registry]:
    folder = Path(tempfile.mkdtemp(prefix="cluster-compute-test-"))
    port = free_port()
    address = f"127.0.0.1:{port}"
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"{username}:{hashed}\n")
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "store")}},
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}},
    }
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    command = [_program(folder), "serve", str(folder / "config.yml")]
    try:
        with serving(command, port, folder / "log"):
            yield Registry(address, username, password)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
