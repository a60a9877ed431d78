# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``ssh``: derives the keys, sends each agent its share, and writes the user's files."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Sequence

from ..module_utils._agent.ssh import config_files
from ..module_utils._agent.ssh.container_set import members_of, plan_of, user_of
from ..module_utils._shared.codec import Json, ModuleResult
from ..module_utils._shared.documents import validation
from ..module_utils._shared.documents.plan import Plan
from ..module_utils._shared.errors import ComputeError, InputError
from ..module_utils._shared.value_rules import check_whole
from ..plugin_utils._client.identity import SessionIdentity
from ..plugin_utils._client.session_dir import Artifacts
from ..plugin_utils._hosts.action import TASK
from ..plugin_utils._hosts.call import Call
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._hosts.results import joint_result
from ..plugin_utils._hosts.steps import SSH_FIND, SSH_INSTALL, SSH_INSTALL_SET


class ActionModule(ConductorAction):
    """Carries out the step once on each agent, with all secrets in a single parameter that is never logged."""

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        if bool(options["plan"]) == bool(options["containers"]):
            raise InputError("plan", None, "must be set, or containers, but not both")
        if options["containers"] and not options["name"]:
            raise InputError("name", None, "must be set with containers: it names their keys")
        return _of_set(play, options) if options["containers"] else _of_plan(play, options)


def _of_plan(play: Play, options: Mapping[str, Any]) -> ModuleResult:
    """Install the files in the created containers of a session, and write the files that reach it from the controller."""
    plan = validation.plan(options["plan"], TASK)
    address = options["address"] or config_files.default_address(plan)
    artifacts = Artifacts(options["artifacts"] or "", plan.session.name)
    own = SessionIdentity.of(plan, artifacts, check=play.check)

    def call(agent: str) -> Call[Json]:
        hostnames = [one.hostname for one in plan.on(agent) if one.hostname in options["hostnames"]]
        return SSH_INSTALL(plan=plan.part(agent), bundle=own.bundle(agent), containers=hostnames)

    agents = _agents(play, plan, options["hostnames"])
    result = _installed(play, own, agents, call)
    return own.keep(result, play.route_to(plan.main.agent, address), check=play.check, diff=play.diff)


def _agents(play: Play, plan: Plan, hostnames: Sequence[str]) -> List[str]:
    """The hosts of the play that have the containers. Raises InputError for a hostname that the plan does not have there."""
    here = [one for one in plan.containers if one.agent in play.names]
    for hostname in hostnames:
        if hostname not in [one.hostname for one in here]:
            raise InputError("hostnames", hostname, "must name containers that the plan has on hosts of the play")
    return list(dict.fromkeys(one.agent for one in here if not hostnames or one.hostname in hostnames))


def _of_set(play: Play, options: Mapping[str, Any]) -> ModuleResult:
    """Bring SSH into running containers: find them on their hosts first, because each gets the names of all."""
    members, user = members_of(options["containers"]), user_of(options["user"])
    port = check_whole("port", options["port"], 1, 65535)
    for member in members:
        if member.host and member.host not in play.names:
            raise InputError("containers", member.host, "must be a host of the play")

    names = {host: [one.name for one in members if one.host in ("", host)] for host in play.names}
    hosts = [host for host in play.names if names[host]]
    found = play.on_each(hosts, lambda host: SSH_FIND(names=names[host], network=options["network"]))
    plan = plan_of(options["name"], members, {host: answer.found for host, answer in found.items()}, user)
    own = SessionIdentity.of(plan, Artifacts(options["artifacts"] or "", plan.session.name), check=play.check)

    def call(agent: str) -> Call[Json]:
        return SSH_INSTALL_SET(plan=plan.part(agent), bundle=own.bundle(agent, port), port=port)

    result = _installed(play, own, plan.agents, call)
    changed = bool(result["changed"] or own.is_new)
    return {**result, "changed": changed, "addresses": dict(plan.addresses), "artifacts": own.artifacts.folder}


def _installed(play: Play, own: SessionIdentity, agents: Sequence[str], call: Callable[[str], Call[Json]]) -> Json:
    """The joint result of the step on the agents. If it fails, keys that were made for it are removed."""
    try:
        return {"installed": [], **joint_result(play.on_each(agents, call))}
    except ComputeError:
        own.forget()
        raise
