# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a copy may replace an image."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.image import AgentImage
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._steps import image
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import AgentHandle

FOREIGN = {"Id": "sha256:other", "Config": {"Labels": None}}


def test_a_copy_takes_no_name_from_an_image_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent can have got an image of that name since the commit has looked."""
    loaded: list[Any] = []
    monkeypatch.setattr(
        image.images, "describe_image", lambda *_parts: AgentImage("a1", present=True, id="sha256:other")
    )
    monkeypatch.setattr(image.images, "load_image", lambda _engine, options: loaded.append(options))
    monkeypatch.setattr(image.commits.CommitEngine, "image", lambda _engine, _name: FOREIGN)
    with pytest.raises(StateError, match="has an image team/train:2 that is not of a session of alice"):
        image.load(AgentHandle("a1", ""), "team/train:2", "/tmp/archive", "sha256:new", owner="alice")
    assert loaded == []
