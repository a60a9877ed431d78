# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error messages of engines, and the sentences that users read."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import (
    LONGEST,
    advice,
    clean_message,
    is_taken,
    naming_image,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError

CLEANED = [
    (
        "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
        'exec: "/opt/x": stat /opt/x: no such file or directory: unknown',
        'exec: "/opt/x": stat /opt/x: no such file or directory',
    ),
    (
        "driver failed programming external connectivity on endpoint train.main1 (0123456789abcdef): "
        "Bind for 127.0.0.1:30000 failed: port is already allocated",
        "Bind for 127.0.0.1:30000 failed: port is already allocated",
    ),
    (
        "failed to set up container networking: driver failed programming external connectivity on endpoint main1 (0123abcd): "
        "failed to bind host port 127.0.0.1:30000/tcp: address already in use",
        "failed to bind host port 127.0.0.1:30000/tcp: address already in use",
    ),
    ("two\nlines\t and  spaces.", "two lines and spaces"),
    ("plain", "plain"),
    ("", ""),
]


@pytest.mark.parametrize(("said", "shown"), CLEANED)
def test_clean(said: str, shown: str) -> None:
    assert clean_message(said) == shown


def test_long_reasons_are_cut() -> None:
    assert len(clean_message("x" * 1000)) == LONGEST


ADVISED = [
    ("Container 0123 is paused, unpause the container before exec", "docker unpause"),
    ("No such image: none:1", "build or pull"),
    ("Bind for 0.0.0.0:80 failed: port is already allocated", "free that port"),
    ("listen tcp4 127.0.0.1:80: bind: address already in use", "free that port"),
    # An Engine 28 binds the port itself, with these words in its first releases, and then with those.
    ("failed to bind host port for 0.0.0.0:80:172.18.0.2:80/tcp: address already in use", "free that port"),
    ("failed to bind host port 0.0.0.0:80/tcp: address already in use", "free that port"),
    ("Address already in use", "remove the container that has that address"),
    ('could not select device driver "nvidia" with capabilities: [[gpu]]', "NVIDIA container toolkit"),
    ("Pool overlaps with other one on this address space", "another pool of subnets"),
    ("This node is not a swarm manager.", "manager of the Swarm"),
    ("failed to mount local volume: mount :/export/data: no such device", "that the host can mount it"),
    # A file server that refuses root, and a registry behind a firewall.
    (
        'invalid mount config for type "bind": stat /nfs/home/alice: permission denied',
        "a file server may refuse root",
    ),
    ('Get "https://registry.site/v2/": dial tcp 192.0.2.1:443: i/o timeout', "make sure that this host can reach it"),
    ("net/http: TLS handshake timeout", "make sure that this host can reach it"),
    ("request canceled (Client.Timeout exceeded while awaiting headers)", "make sure that this host can reach it"),
    ("timed out", "check the load of that host, and run the same command again"),
    ("configured logging driver does not support reading", "where its logging driver sends it"),
    ("cannot stop container: 37: tried to kill container, but did not receive an exit event", "end the session again"),
    # The engine answers: it runs.
    ("mkdir /home/work: no such file or directory", "correct its image, or choose another"),
    (
        "lstat /var/lib/docker/overlay2/a/merged/etc/ssh/ssh_config: not a directory",
        "correct its image, or choose another",
    ),
    (
        'exec: "/opt/cluster-compute/bin/init": stat /opt/cluster-compute/bin/init: no such file or directory',
        "provision_agents",
    ),
    ("dial tcp 10.0.0.1:443: connect: connection refused", "make sure that this host can reach it"),
    ("something new", "otherwise"),
]


@pytest.mark.parametrize(("reason", "what"), ADVISED)
def test_advice(reason: str, what: str) -> None:
    assert what in advice(reason, "otherwise")


TAKEN = [reason for reason, what in ADVISED if what in ("free that port", "another pool of subnets")]


@pytest.mark.parametrize("reason", TAKEN)
def test_another_port_or_subnet_is_tried_in_place_of_one_that_is_taken(reason: str) -> None:
    assert is_taken(reason)


def test_permission_denied_is_about_the_socket_if_the_engine_does_not_answer() -> None:
    assert "group docker" in advice("Permission denied", "otherwise", is_silent=True)


@pytest.mark.parametrize("reason", ["No such file or directory", "Connection refused", "('Connection aborted.', …)"])
def test_only_an_engine_that_does_not_answer_is_to_be_started(reason: str) -> None:
    assert advice(reason, "otherwise", is_silent=True) == "start the engine"
    assert advice(reason, "otherwise") != "start the engine"


def test_an_error_of_the_image_names_it() -> None:
    with pytest.raises(EngineError) as caught, naming_image("lab/odd:1"):
        raise EngineError(
            "main1: mkdir /home/work: no such file or directory; %s." % advice("no such file or directory", "")
        )
    assert caught.value.message.endswith("; correct image lab/odd:1, or choose another.")
