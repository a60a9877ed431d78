# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool, and a Prometheus that reads a file of metrics in two ways: Debian's packages, unpacked and not installed.

Prometheus reads the file as OpenMetrics from a web server, and through node_exporter's textfile collector.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from servers import free_ports, serving, until

PACKAGES = ("prometheus", "prometheus-node-exporter")
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONFIG = """
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: node
    static_configs: [{targets: ["127.0.0.1:%d"]}]
  - job_name: direct
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that answers at a port of this machine."""

    port: int

    def is_ready(self) -> bool:
        """Whether it answers queries: it listens before it has loaded its data."""
        with contextlib.suppress(urllib.error.URLError):
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=30).status == 200
        return False

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        address = f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found


def unpack(folder: Path) -> Path:
    """The folder of the programs."""
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=folder, check=True, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "root")], check=True)
    return folder / "root/usr/bin"


@contextlib.contextmanager
def prometheus(programs: Path, metrics: Path) -> Iterator[Prometheus]:
    """A Prometheus that has read the file twice: both jobs have its series."""
    port, node, *_others = free_ports(3)
    folder = programs.parent
    with _web_server(metrics) as direct:
        (folder / "prometheus.yml").write_text(CONFIG % (node, direct))
        exporter = [
            str(programs / "prometheus-node-exporter"),
            *("--collector.disable-defaults", "--collector.textfile"),
            *(f"--collector.textfile.directory={metrics.parent}", f"--web.listen-address=127.0.0.1:{node}"),
        ]
        server = [
            str(programs / "prometheus"),
            *(f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with serving(exporter, node, folder / "node.log"), serving(server, port, folder / "prometheus.log"):
            made = Prometheus(port)
            until(made.is_ready, "Prometheus answers")
            until(lambda: len(made.ask("up == 1")) == 2, "Prometheus has read the file in both ways")
            yield made


@contextlib.contextmanager
def _web_server(metrics: Path) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", OPENMETRICS)
            self.end_headers()
            self.wfile.write(metrics.read_bytes())

        def log_message(self, *_arguments: object) -> None:
            """Prometheus asks every second."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
