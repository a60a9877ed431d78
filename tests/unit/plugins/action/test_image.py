# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which registry receives a login."""

from __future__ import annotations

import pytest
from played import played

from ansible_collections.cluster.compute.plugins.action import image
from ansible_collections.cluster.compute.plugins.plugin_utils._session import images

LOGIN = {"username": "bob", "password": "s3cret"}


@pytest.mark.parametrize(
    ("registry", "name", "is_sent"),
    [
        ("registry.example.org", "registry.example.org/team/train:1", True),
        ("docker.io", "pytorch/pytorch", True),
        (None, "registry.example.org/team/train:1", True),
        ("registry.example.org", "pytorch/pytorch", False),
        ("docker.io", "registry.example.net/a:1", False),
        ("registry.example.org", "registry.example.org.evil.example.net/a:1", False),
    ],
)
def test_only_its_own_registry_receives_a_login(
    monkeypatch: pytest.MonkeyPatch, registry: str | None, name: str, is_sent: bool
) -> None:
    monkeypatch.setattr(images, "login_for", lambda reference: {"identity_token": reference})
    action = played(image.ActionModule, {}, args={"name": name, "registry": registry, **LOGIN})
    action.counted_step = action.step
    action.act()
    [asked] = action.asked
    sent = {key: asked[key] for key in ("username", "password", "identity_token") if key in asked}
    assert sent == (LOGIN if is_sent else {"identity_token": name})
