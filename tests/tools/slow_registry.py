#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry with a single image, whose layer takes its time: slow_registry.py PORT SECONDS.

It runs on an agent itself, because engines take an address of their own host without TLS. The image is the same everywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import random
import sys
import tarfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

NAME = "team/slow:1"
PARTS = 60
_DOCKER = "application/vnd.docker."
MANIFEST = _DOCKER + "distribution.manifest.v2+json"


def _layer() -> bytes:
    """An image needs no program of its own: a file of a few megabytes."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        content = random.Random(0).randbytes(3 << 20)
        member = tarfile.TarInfo("data")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Image:
    """The documents of the registry, by digest."""

    def __init__(self) -> None:
        plain = _layer()
        self.layer = gzip.compress(plain, mtime=0)
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        config = {"architecture": machine, "os": "linux", "config": {}}
        config["rootfs"] = {"type": "layers", "diff_ids": [_digest(plain)]}
        written = json.dumps(config).encode()
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._part(_DOCKER + "container.image.v1+json", written),
            "layers": [self._part(_DOCKER + "image.rootfs.diff.tar.gzip", self.layer)],
        }
        self.manifest = json.dumps(manifest).encode()
        self.blobs = {_digest(content): content for content in (self.layer, written)}

    @staticmethod
    def _part(kind: str, content: bytes) -> dict[str, object]:
        return {"mediaType": kind, "size": len(content), "digest": _digest(content)}


class Handler(BaseHTTPRequestHandler):
    """The registry's API for pulls: https://distribution.github.io/distribution/spec/api/"""

    protocol_version = "HTTP/1.1"
    image: ClassVar[Image]
    seconds: ClassVar[float]

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        content = self._answer()
        pause = self.seconds / PARTS if content is self.image.layer else 0.0
        size = len(content) // PARTS + 1 if pause else len(content) or 1
        for start in range(0, len(content), size):
            self.wfile.write(content[start : start + size])
            time.sleep(pause)

    def _answer(self) -> bytes:
        """The headers of an answer; its content."""
        kind, content = "application/json", b"{}"
        if "/manifests/" in self.path:
            kind, content = MANIFEST, self.image.manifest
        elif "/blobs/" in self.path:
            kind, content = "application/octet-stream", self.image.blobs[self.path.rpartition("/")[2]]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Docker-Content-Digest", _digest(content))
        self.end_headers()
        return content


def main(port: str, seconds: str) -> None:
    Handler.image, Handler.seconds = Image(), float(seconds)
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
