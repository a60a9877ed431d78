# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a relay gets from the image of ``main1``."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_SESSION, RUNTIME_PATH
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import App
from ansible_collections.cluster.compute.plugins.module_utils._docker.relays import Relays, relay_body


def body() -> dict[str, Any]:
    main = {
        "Id": "m",
        "ImageID": "sha256:0",
        "Names": ["/alice.train.main1"],
        "Labels": {},
        "Mounts": [{"Name": "runtime", "Destination": RUNTIME_PATH}],
        "NetworkSettings": {"Networks": {"n": {"IPAMConfig": {"IPv4Address": "10.0.0.2"}}}},
    }
    return relay_body(main, App(name="web", port=80), 30001, {})


def test_a_relay_of_a_cuda_image_sees_no_gpu() -> None:
    assert body()["Env"] == ["NVIDIA_VISIBLE_DEVICES=void"]


def test_a_relay_keeps_no_log_on_the_disk_of_its_agent() -> None:
    assert body()["HostConfig"]["LogConfig"] == {"Type": "none"}


def test_on_the_network_of_its_agent_an_app_has_no_relay() -> None:
    class Engine:
        def containers(self, _session: str) -> list[dict[str, Any]]:
            return []

    main = {"Id": "m", "Labels": {LABEL_SESSION: "s"}, "HostConfig": {"NetworkMode": "host"}}
    relays = Relays(Engine(), main, (30000, 30001))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="session_network host: the app listens at its own port of the agent"):
        relays.change([App(name="web", port=8000)], [])
    assert not relays.change([], ["web"])
