# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``image``: the login, the decisions, and the archive on its way from one agent to the others."""

from __future__ import annotations

import os
import shutil
import tempfile
import time

from ansible import constants

from ansible_collections.cluster.compute.plugins.module_utils._agents import image_distribution
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._registry_login import login_for

ARCHIVE = "image.tar"
PREFIX = "image-"


class ActionModule(ComputeAction):
    """Archives are readable by their owner alone, and gone when their task is done: Ansible removes its folders, always."""

    def act(self, args: Json, task_vars: Json) -> Json:
        states = {
            "present": self._present,
            "planned": self._planned,
            "decided": self._decided,
            "fetched": self._fetched,
            "copied": self._copied,
            "cleared": self._cleared,
        }
        state = states.get(args.get("state", "asked"))
        return state(args, task_vars) if state else self.module("image", args, task_vars)

    def _present(self, args: Json, task_vars: Json) -> Json:
        if not args.get("username"):
            args.pop("username", None)
            args.pop("password", None)
            args.update(login_for(args["name"]))
        return self.module("image", args, task_vars)

    def _planned(self, args: Json, _task_vars: Json) -> Json:
        plan = image_distribution.plan_pulls(
            args["needing"], image_distribution.by_name(args["images"]), args.get("pull", image_distribution.MISSING)
        )
        return {"changed": False, "plan": plan, "begun": time.time()}

    def _decided(self, args: Json, _task_vars: Json) -> Json:
        images = image_distribution.by_name(args["images"])
        plan = image_distribution.plan_copies(args["needing"], images)
        image_distribution.check_copies(args["name"], plan, images, args.get("variable", "session_image"))
        pulled = [name for name in args.get("pulled") or [] if not images[name]["reason"]]
        seconds = time.time() - float(args.get("begun") or time.time())
        return {
            "changed": False,
            "plan": plan.to_json(),
            "told": image_distribution.told(args["name"], pulled, plan, seconds),
        }

    def _fetched(self, args: Json, task_vars: Json) -> Json:
        """The archive is in Ansible's own folder for this run, which is removed at its end whatever happens."""
        if self._task.check_mode:
            return {"changed": False, "path": ""}
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=constants.DEFAULT_LOCAL_TMP)
        free, size = shutil.disk_usage(folder).free, int(args["size"])
        if free < size:
            os.rmdir(folder)
            message = "The controller has %s free in %s, and a copy of image %s needs %s; free some space there."
            raise StateError(message % (show_bytes(free), os.path.dirname(folder), args["name"], show_bytes(size)))
        path = os.path.join(folder, ARCHIVE)
        remote = self._connection._shell.join_path(self._make_tmp_path(), ARCHIVE)
        result = self.module("image", dict(args, state="saved", path=remote), task_vars)
        if not result.get("failed"):
            self._connection.fetch_file(remote, path)
            os.chmod(path, 0o600)
            result["path"] = path
        return result

    def _copied(self, args: Json, task_vars: Json) -> Json:
        if self._task.check_mode:
            return {"changed": True}
        folder = self._make_tmp_path()
        remote = self._connection._shell.join_path(folder, ARCHIVE)
        self._connection.put_file(args["path"], remote)
        self._fixup_perms2((folder, remote))
        return self.module("image", dict(args, state="loaded", path=remote), task_vars)

    def _cleared(self, args: Json, _task_vars: Json) -> Json:
        folder = os.path.dirname(str(args.get("path") or ""))
        if os.path.basename(folder).startswith(PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        return {"changed": False}
