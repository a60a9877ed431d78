# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``mpirun`` without options: Debian's Open MPI."""

from __future__ import annotations

from collections.abc import Callable

from controller import Controller
from mpi_slots import PAIRS, check_slots


def test_mpirun_fills_the_slots_of_all_containers(controller: Controller, image: Callable[..., str]) -> None:
    session = controller.launched("slots", session_image=image("mpi"), **PAIRS)
    check_slots(session, r"mpirun \(Open MPI\) 4")
    controller.terminate(session.name).check()


def test_apt_leaves_no_packages_in_an_environment(controller: Controller, image: Callable[..., str]) -> None:
    """The image of the environment mpi had 100 MB of packages that were installed, and 80 MB of caches."""
    client = controller.client
    container = client.create_container(image("mpi"), ["find", "/var/cache/apt", "-type", "f", "-size", "+0"])
    try:
        client.start(container)
        assert client.wait(container)["StatusCode"] == 0
        assert client.logs(container) == b""
    finally:
        client.remove_container(container, force=True)
