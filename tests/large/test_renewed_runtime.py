# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH runtime is built again from today's packages while a session runs. Builds the reference image: minutes."""

from __future__ import annotations

from controller import ROOT, Controller, Session, run

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import (
    RUNTIME_PATH,
    RUNTIME_VOLUME_PREFIX,
)

BUILD_SECONDS = 1200


def runtime(session: Session) -> str:
    """The volume that main1 has mounted."""
    mounts = session.containers()["main1"]["Mounts"]
    return next(str(mount["Name"]) for mount in mounts if mount["Destination"] == RUNTIME_PATH)


def test_a_renewed_runtime_is_for_new_sessions_and_a_running_session_keeps_its_own(controller: Controller) -> None:
    old = controller.launched("keeps")
    before = runtime(old)
    renew = controller.command("provision_agents", agent_renew_runtime=True)
    renewed = run(renew, cwd=ROOT, env=controller.environment, timeout=BUILD_SECONDS)
    assert renewed.check().changed > 0

    new = controller.launched("renewed")
    assert runtime(new) not in ("", before)
    assert runtime(new).startswith(RUNTIME_VOLUME_PREFIX)
    assert new.say("main1", "ssh main1 hostname") == "main1"
    assert runtime(old) == before
    assert old.say("main1", "ssh main1 hostname") == "main1"
    assert "RUNNING, nothing to do" in controller.launch("keeps").check().text

    for name in ("keeps", "renewed"):
        controller.terminate(name).check()
    assert controller.play("provision_agents").check().changed > 0, "the runtime that no session uses is removed"
    left = controller.client.volumes(filters={"name": before})["Volumes"] or []
    assert left == []
