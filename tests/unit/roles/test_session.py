# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role computes in its own expressions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TASKS = Path(__file__).resolve().parents[3] / "roles" / "session" / "tasks"


def task(file: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in yaml.safe_load((TASKS / file).read_text()) if one["name"] == name)
    return found


def agents(*present: bool | None) -> dict[str, Any]:
    """By host what it was asked: whether it has the image, and None for one that did not answer."""
    reports = [{"reachable": one is not None, "image": {"present": bool(one)}} for one in present]
    return {"agent%d" % number: {"session_report": {"agent": one}} for number, one in enumerate(reports)}


@pytest.mark.parametrize(
    ("present", "variables", "seconds"),
    [
        ((True, True), {}, 600),
        ((True, True), {"session_launch_timeout": "30"}, 30),
        ((True, True), {"session_request": {"bootstrap": "pip install x"}}, 900),
        ((True, False), {}, 2400),
        ((True, None), {}, 600),
        ((True,), {"session_pull": "always"}, 2400),
        ((False,), {"session_request": {"bootstrap": "x"}, "session_pull_timeout": 60}, 960),
    ],
    ids=["nothing", "shorter", "a bootstrap", "an image", "a lost agent", "always an image", "all of it"],
)
def test_the_lease_covers_all_that_a_launch_may_wait_for(
    present: tuple[bool | None, ...], variables: dict[str, Any], seconds: int
) -> None:
    hosts = agents(*present)
    known = {
        "session_launch_timeout": 600,
        "session_bootstrap_timeout": 300,
        "session_pull_timeout": 1800,
        "session_pull": "missing",
        "session_request": {"bootstrap": ""},
        "ansible_play_hosts_all": list(hosts),
        "hostvars": hosts,
        **variables,
    }
    own = {name: trust_as_template(text) for name, text in task("launch.yml", "Place the session")["vars"].items()}
    templar = Templar(DataLoader(), variables={**known, **own})
    assert int(templar.template(trust_as_template("{{ __session_lease }}"))) == seconds


def test_a_queued_session_is_launched_as_it_was_asked_for() -> None:
    """Each variable of the role that says how is in the request, and comes from there."""
    [block] = yaml.safe_load((TASKS / "schedule_one.yml").read_text())
    given = block["block"][-1]["vars"]
    asked = task("main.yml", "Check what is asked for")["cluster.compute.session"]["request"]
    for name in ("bootstrap_timeout", "verify_timeout", "pull", "pull_timeout"):
        assert asked[name] == "{{ session_%s }}" % name
        assert given["session_" + name] == "{{ session_pending.request.%s }}" % name
