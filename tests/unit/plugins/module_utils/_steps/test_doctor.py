# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor removes of examinations that did not end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._steps import doctor


@pytest.mark.parametrize("made", ["\u00b2", "-1", "", "9" * 30, "now"])
def test_a_label_of_another_user_does_not_stop_the_doctor(made: str) -> None:
    removed: list[str] = []

    class Engine:
        def networks(self, everyone: bool) -> list[dict[str, Any]]:
            labels = (made, str(int(time.time())), "1000")
            return [
                {"Id": text, "Name": doctor._NETWORK % number, "Labels": {label.CHECK: text}}
                for number, text in enumerate(labels)
            ]

        def remove_network(self, identity: str, _name: str) -> None:
            removed.append(identity)

    doctor._remove_old_networks(Engine())  # type: ignore[arg-type]
    assert removed == ["1000"]
