# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of examples/, built by the engine and kept for the next run. The tag is a digest of the sources."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound
from locks import lock

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "cluster-compute/reference:1"
LABEL = "cluster.compute.test.example"


def build(client: Any, name: str, variant: str = "") -> str:
    """The tag of an example's image, built if this engine does not have it yet; a variant has the Dockerfile in ``image-VARIANT``."""
    with lock(f"example-{name}"):
        return _built(client, name, variant)


def _built(client: Any, name: str, variant: str) -> str:
    folder = ROOT / "examples" / name
    suffix = f"-{variant}" if variant else ""
    tag = f"cluster-compute-test/example-{name}{suffix}:{_digest(client, folder)}"
    with contextlib.suppress(ImageNotFound):
        client.inspect_image(tag)
        return tag
    with contextlib.ExitStack() as stack:
        arguments = stack.enter_context(wheels(client, folder)) if any(folder.glob("requirements*.txt")) else {}
        _build(client, folder, suffix, tag, arguments)
    for old in client.images(filters={"label": f"{LABEL}={name}{suffix}"}):
        for other in old["RepoTags"] or []:
            if other != tag:
                client.remove_image(other)
    return tag


def _digest(client: Any, folder: Path) -> str:
    """A digest of everything that goes into the image."""
    found = hashlib.sha256(client.inspect_image(REFERENCE)["Id"].encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def _build(client: Any, folder: Path, suffix: str, tag: str, arguments: dict[str, str]) -> None:
    lines = []
    for line in client.build(
        path=str(folder),
        dockerfile=f"image{suffix}/Dockerfile",
        tag=tag,
        buildargs=arguments,
        labels={LABEL: folder.name + suffix},
        network_mode="host",
        rm=True,
        forcerm=True,
        decode=True,
    ):
        lines.append(line.get("stream") or line.get("error") or "")
        assert "error" not in line, "".join(lines[-40:])


@contextlib.contextmanager
def wheels(client: Any, folder: Path) -> Iterator[dict[str, str]]:
    """Download the Python packages of an image with this machine's pip settings and serve them to the build.

    Yields the build's arguments.
    """
    version = _python_of(client)
    kept = ROOT / ".cache" / "wheels" / version
    commands = {
        "requirements.txt": ["download", "--only-binary", ":all:", "--python-version", version, "--dest"],
        "requirements-source.txt": ["wheel", "--no-deps", "--use-pep517", "--wheel-dir"],  # pure Python
        "requirements-compiled.txt": ["download", "--no-deps", "--dest"],  # the build of the image compiles it
    }
    for name, command in commands.items():
        if (folder / name).exists():
            _pip(*command, str(kept), "--requirement", str(folder / name))
    handler = functools.partial(_Quiet, directory=str(kept))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"http://127.0.0.1:{server.server_port}/"}
        server.shutdown()


def _pip(command: str, *arguments: str) -> None:
    line = [sys.executable, "-m", "pip", command, "--quiet", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def _python_of(client: Any) -> str:
    """The version of Python in the reference image, in the form that pip expects."""
    made = client.create_container(REFERENCE, ["python3", "-c", "import platform; print(platform.python_version())"])
    try:
        client.start(made["Id"])
        client.wait(made["Id"], timeout=60)
        return str(client.logs(made["Id"]).decode().strip().rpartition(".")[0])
    finally:
        client.remove_container(made["Id"], force=True)
