# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distribute one image to all agents: decide who pulls and who gets a copy, and carry the archive of that copy."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from typing import ContextManager

from ansible import constants
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._agents import image_distribution
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError, StateError
from ..module_utils._core.units import show_bytes
from ..modules.image_distribution import ARGUMENT_SPEC, RULES
from ..plugin_utils import _direct_call as direct_call
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._transfer_watch import watched

ARCHIVE = "image.tar"
PREFIX = "image-"
CONTROLLER = "localhost"


class ActionModule(ComputeAction):
    """Only their owner can read the archives. Ansible removes their folders at the end of the run, whatever happens."""

    def act(self, args: Json, task_vars: Json) -> Json:
        checked = ArgumentSpecValidator(ARGUMENT_SPEC, required_if=RULES["required_if"]).validate(args)
        if checked.error_messages:
            raise ComputeError(str(checked.error_messages[0]))
        # The modules resolve the address of the engine on their host: the default here would be the controller's.
        options = {**checked.validated_parameters, "engine": _engine_options(args)}
        steps = {
            "plan_pulls": self._plan_pulls,
            "plan_copies": self._plan_copies,
            "fetch": self._fetch,
            "deliver": self._deliver,
            "clean_up": self._clean_up,
        }
        return steps[options["step"]](options, task_vars)

    def _plan_pulls(self, options: Json, task_vars: Json) -> Json:
        info = self.results_of_hosts(options["info_variable"], task_vars)
        images = image_distribution.images_of(options["asked"], info)
        plan = image_distribution.plan_pulls(options["agents"], images, options["pull"], options["name"])
        return {"changed": False, "agents": plan.pop("pull"), **plan, "begun": time.time()}

    def _plan_copies(self, options: Json, task_vars: Json) -> Json:
        pulls = options["pulls"]
        info = self.results_of_hosts(options["info_variable"], task_vars)
        pulled = self.results_of_hosts(options["pulled_variable"], task_vars)
        results = {**info, **{name: pulled.get(name, {}) for name in pulls["agents"]}}
        images = {
            **image_distribution.by_name(options["other_images"]),
            **image_distribution.images_of(options["asked"], results),
        }
        if not options["other_images"] and not any(image["present"] for image in images.values()):
            images = {**self._controller_image(options["name"], task_vars), **images}
        plan = image_distribution.plan_copies(options["agents"], images, options["name"])
        image_distribution.check_copies(options["name"], plan, images, options["variable"])
        successful = [name for name in pulls["agents"] if not images[name]["reason"]]
        message = image_distribution.distribution_message(
            options["name"], successful, plan, time.time() - pulls["begun"]
        )
        document = plan.to_json()
        return {"changed": False, "agents": document.pop("copies"), **document, "message": message}

    def _controller_image(self, name: str, task_vars: Json) -> Json:
        """The image of the controller's own engine; nothing if the controller has no engine that answers."""
        address = ((task_vars.get("hostvars") or {}).get(CONTROLLER) or {}).get("agent_docker_host")
        args = {"name": name, "agent": CONTROLLER, **({"docker_host": str(address)} if address else {})}
        result = direct_call.call("image_info", args, check_mode=False, diff=False)
        return {CONTROLLER: result["image"]} if result.get("image") else {}

    def _fetch(self, options: Json, task_vars: Json) -> Json:
        """Bring an archive to Ansible's own folder for this run, which Ansible removes at the end of the run."""
        if self._task.check_mode:
            return {"changed": False, "path": ""}
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=constants.DEFAULT_LOCAL_TMP)
        free, size = shutil.disk_usage(folder).free, options["size"]
        if free < size:
            os.rmdir(folder)
            message = "The controller has %s free in %s, but the copy of image %s needs %s; free some space there."
            raise StateError(message % (show_bytes(free), os.path.dirname(folder), options["name"], show_bytes(size)))
        path = os.path.join(folder, ARCHIVE)
        remote = self._connection._shell.join_path(self._make_tmp_path(), ARCHIVE)
        wanted = {key: options[key] for key in ("id", "agent", "size")}
        with self._counted(remote, options["agent"], size):
            result = self.module("image_export", {**wanted, **options["engine"], "path": remote}, task_vars)
        if not result.get("failed"):
            self._connection.fetch_file(remote, path)
            os.chmod(path, 0o600)
            result.update(changed=False, path=path)
        return result

    def _deliver(self, options: Json, task_vars: Json) -> Json:
        if self._task.check_mode:
            return {"changed": True}
        folder = self._make_tmp_path()
        remote = self._connection._shell.join_path(folder, ARCHIVE)
        with self._counted(remote, options["agent"], os.stat(options["path"]).st_size):
            self._connection.put_file(options["path"], remote)
        self._fixup_perms2((folder, remote))
        wanted = {key: options[key] for key in ("name", "id", "content", "agent")}
        return self.module("image_load", {**wanted, **options["engine"], "path": remote}, task_vars)

    def _counted(self, remote: str, agent: str, size: int) -> ContextManager[None]:
        """Show the size of a file on the host while it grows."""
        return watched(self._connection, agent, "stat -c %s " + shlex.quote(remote), size)

    def _clean_up(self, options: Json, _task_vars: Json) -> Json:
        folder = os.path.dirname(options["path"] or "")
        if os.path.basename(folder).startswith(PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        return {"changed": False}


def _engine_options(args: Json) -> Json:
    """The options of the engine that the task itself sets."""
    return {key: args[key] for key in ("docker_host", "timeout") if args.get(key)}
