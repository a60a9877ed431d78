# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller for all examples, and their images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import example_images
import pytest
from controller import Controller


@pytest.fixture(scope="session")
def controller(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller with a home of its own, on an engine that has the reference image."""
    with Controller(tmp_path_factory.mktemp("controller") / "own", engine_host) as made:
        yield made


@pytest.fixture(scope="session")
def image(controller: Controller) -> Callable[..., str]:
    """A function that returns the image of an example, by its name and variant."""
    return functools.partial(example_images.build, controller.client)
