# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which registry receives a login."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.action import image
from ansible_collections.cluster.compute.plugins.plugin_utils._counted_action import CountedAction

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
    def given(_self: Any, args: dict[str, Any], _task_vars: dict[str, Any]) -> dict[str, Any]:
        return args

    monkeypatch.setattr(CountedAction, "act", given)
    monkeypatch.setattr(image, "login_for", lambda reference: {"identity_token": reference})
    action = image.ActionModule.__new__(image.ActionModule)
    args = action.act({"name": name, "registry": registry, **LOGIN}, {})
    assert args == {"name": name, **(LOGIN if is_sent else {"identity_token": name})}
