# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow itself trains over the containers of a session, which it finds by TF_CONFIG alone."""

from __future__ import annotations

import re

import example_images
import yaml
from controller import ROOT, Controller, Session
from environments import NAME, copied, launched, said

EXAMPLE = ROOT / "examples" / "tensorflow_training"
LINE = re.compile(r"worker (\d) of 2, 2 replicas in sync: y = (\S+) x \+ (\S+), loss (\S+)")

FITTED = re.compile(r"(alone|2 workers, slope on ps 0, offset on ps 1): (y = \S+ x \+ \S+, loss \S+)")


def check_line(text: str) -> None:
    """Both workers have found the line that the points of both are on."""
    found = {worker: (float(slope), float(offset), float(loss)) for worker, slope, offset, loss in LINE.findall(text)}
    assert set(found) == {"0", "1"}, text
    assert found["0"] == found["1"], "the workers share the line"
    slope, offset, loss = found["0"]
    assert abs(slope - 3) < 0.01
    assert abs(offset - 1) < 0.01
    assert loss < 0.001


def test_multi_worker_mirrored_strategy_trains_on_two_containers(controller: Controller) -> None:
    image = example_images.build(controller.client, EXAMPLE.name)
    session = yaml.safe_load((EXAMPLE / "session.yml").read_text())
    controller.play("cluster_session", **{**session, "session_image": image}).check()
    logs = controller.play("session_logs", session_name=session["session_name"]).check().text
    check_line(logs)
    controller.terminate(session["session_name"]).check()


def test_parameter_servers_train_to_the_loss_of_one_process(controller: Controller) -> None:
    image = example_images.build(controller.client, EXAMPLE.name)
    settings = yaml.safe_load((EXAMPLE / "parameter_servers.yml").read_text())
    controller.play("cluster_session", **{**settings, "session_image": image}).check()
    session = Session(controller, settings["session_name"])
    [(_where, trained)] = FITTED.findall(controller.play("session_logs", session_name=session.name).check().text)
    assert FITTED.findall(said(session, "parameter_servers.py --alone")) == [("alone", trained)]
    controller.terminate(session.name).check()


def test_the_environment_of_this_name_trains_on_two_containers(controller: Controller) -> None:
    session = launched(controller, "tensorflow")
    copied(controller, EXAMPLE / "train.py")
    check_line(said(session, "everywhere python3 train.py"))
    controller.terminate(NAME).check()
