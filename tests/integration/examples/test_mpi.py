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
