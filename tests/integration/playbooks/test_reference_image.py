# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A reference image that was made from another content loses its name, so that provisioning builds it again."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import PLAYBOOK, Controller, run_playbook

REFERENCE_LABEL = "cluster.compute.image"

# Provisioning runs the same task file, for the name of the reference image.
PLAY = """\
- hosts: agents
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: cluster.compute.image
        tasks_from: forget.yml
      vars:
        image_reference: {name}
        __image_is_renewed: false
"""


@pytest.fixture
def name(controller: Controller) -> Iterator[str]:
    """The name of an image of this test."""
    own = f"cluster-compute-test/forgotten:{uuid.uuid4().hex[:12]}"
    yield own
    for image in controller.client.images(own):
        controller.client.remove_image(image["Id"], force=True)


def import_image(controller: Controller, name: str, version: str) -> None:
    """An image with nothing in it, and this version as its label."""
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w").close()
    repository, _colon, tag = name.partition(":")
    changes = [f"LABEL {REFERENCE_LABEL}={version}"]
    controller.client.import_image_from_data(buffer.getvalue(), repository=repository, tag=tag, changes=changes)


def version_of(controller: Controller, name: str) -> str:
    labels = controller.client.inspect_image(name)["Config"]["Labels"]
    return str(labels[REFERENCE_LABEL])


@pytest.mark.parametrize("is_current", [True, False], ids=["of this content", "of another content"])
def test_only_an_image_of_another_content_loses_its_name(
    controller: Controller, name: str, tmp_path: Path, is_current: bool
) -> None:
    current = version_of(controller, "cluster-compute/reference:1")
    import_image(controller, name, current if is_current else "1")
    play = tmp_path / "forget.yml"
    play.write_text(PLAY.format(name=name))
    done = run_playbook([PLAYBOOK, str(play)], controller.environment).check()
    assert (done.changed, len(controller.client.images(name))) == ((0, 1) if is_current else (1, 0))
