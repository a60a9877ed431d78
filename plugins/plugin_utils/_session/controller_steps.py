# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of the roles that the controller carries out itself: decisions over what the tasks pass, for the most part."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from typing import Dict, List, Optional, Sequence

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.image import AgentImage
from ...module_utils._shared.errors import StateError
from ...module_utils._shared.planning.swarm_plan import JoinPlan, Node, plan_swarm
from ...module_utils._shared.planning.swarm_plan import plan_leave as plan_swarm_leave
from ...module_utils._shared.planning.variable import COMMIT
from ...module_utils._steps.step import Step
from ...module_utils._worker.module import at_least
from .._doctor.provisioning import AgentVariables, role_settings
from .._hosts.action import ComputeAction
from .._variables.known_names_check import check_command
from .image_distribution import plan_reference_image

_LENGTH = 200
# What SSH adds when a shared connection ends.
_OF_SSH = re.compile(r"^(Shared c|C)onnection to .* closed\.?$")


def settings_of_agent(
    place: ComputeAction,
    docker_host: str = "",
    state_dir: str = "",
    swarm_manager: bool = False,
    swarm_address: str = "",
    engine_timeout: int = 60,
    become: Optional[bool] = None,
    swarm: Optional[bool] = None,
) -> ModuleResult:
    """The variables of the role C(agent), without their prefix, with the defaults that depend on the host and on the inventory."""
    at_least({"agent_engine_timeout": engine_timeout}, agent_engine_timeout=1)
    host = str(place.task_vars["inventory_hostname"])
    address = str(place._templar.template(place.task_vars.get("ansible_host") or host))
    given = AgentVariables(docker_host, state_dir, swarm_manager, swarm_address or "", become, swarm)
    facts, groups = place.task_vars.get("ansible_facts") or {}, place.task_vars.get("groups") or {}
    return role_settings(host, address, given, facts, groups)


def plan_join(
    _place: ComputeAction, memberships: Sequence[Json], managers: Sequence[str] = (), head: str = ""
) -> ModuleResult:
    """Decide which agents create or join the Swarm; C(memberships) are results of C(swarm.describe), of which others do not count."""
    nodes = _nodes(memberships, managers)
    return {"plan": (plan_swarm(nodes, head) if nodes else JoinPlan()).to_json()}


def plan_leave(
    _place: ComputeAction, leaving: Sequence[Json], agents: Sequence[str], staying: Sequence[Json] = ()
) -> ModuleResult:
    """Choose the manager that removes each agent that leaves; C(staying) of the plan are the agents of the inventory that stay."""
    return {"plan": plan_swarm_leave(_nodes(leaving), _nodes(staying), agents).to_json()}


def _nodes(results: Sequence[Json], managers: Sequence[str] = ()) -> List[Node]:
    found = [Node.from_json(result["swarm"]) for result in results if result.get("swarm")]
    return [replace(node, wanted=node.name in managers) for node in found]


def plan_image(_place: ComputeAction, images: Sequence[Json], head: str, hosts: Sequence[str]) -> ModuleResult:
    """Decide which agents build an image and which hosts get a copy; C(images) are results of C(image.describe).

    An agent without an answer is not needed. Raises StateError if all have failed.
    """
    found = [validation.image(result, "an agent") for result in images if result.get("image")]
    failures = [str(result["msg"]) for result in images if result.get("msg") and not result.get("image")]
    if images and len(failures) == len(images):
        raise StateError("No agent can say which images it has: " + failures[0])
    return {"plan": plan_reference_image(found, head, hosts).to_json()}


def distribute_image(
    place: ComputeAction,
    name: str,
    needing: Sequence[str],
    asked: Sequence[str],
    elsewhere: Sequence[Json] = (),
    pull: str = "missing",
    deadline: int = 1800,
    registry: str = "",
    username: str = "",
    password: str = "",
    variable: str = "name",
) -> ModuleResult:
    """Give all agents that need an image the same one."""
    # Of all playbooks, few distribute an image outside of a launch: the others do not import the conductor.
    from .._hosts.conducted_action import conducted
    from .images import ImageTarget, distribute, login_to

    login = login_to(name, registry, username, password)
    sources = [validation.arrived(AgentImage, one, "answer", "an agent") for one in elsewhere]
    wanted = ImageTarget(name, needing, asked, sources, pull, deadline, login, variable)
    return conducted(place, lambda play: {"changed": distribute(play, wanted)})


def commit_container(place: ComputeAction) -> ModuleResult:
    """Make an image of a container of a session, as the variables of the task ask for."""
    from .._hosts.conducted_action import conducted
    from .._variables.request_variables import checked_settings
    from .commit import commit_container

    settings = checked_settings(place, COMMIT)
    return conducted(place, lambda play: commit_container(play, settings))


def check_root(place: ComputeAction, script: str = "") -> ModuleResult:
    """Return whether the task runs as root, with the reason if it does not; then the C(lines) that a script prints.

    Before ansible-core 2.19 sudo's refusal is the result of a command, since then it is an exception.
    """
    as_root = f'[ "$(id -u)" != 0 ] || (\n{script}\n)\n' if script else ""
    # On one line: a login shell of the csh family reads no line break in quotes.
    before = f'eval "$(printf %s {b64encode(as_root.encode()).decode()} | base64 -d)"; ' if script else ""
    try:
        answer = place._low_level_execute_command(before + "id -u")
    except AnsibleConnectionFailure:
        raise
    except AnsibleError as error:
        return {"is_root": False, "reason": _refusal(str(error)), "lines": []}
    *lines, user = answer["stdout"].splitlines() or [""]
    if answer["rc"] == 0 and user.strip() == "0":
        return {"is_root": True, "reason": "", "lines": [line.strip() for line in lines]}
    return {"is_root": False, "reason": _refusal(answer["stderr"] or answer["stdout"]), "lines": []}


def _refusal(text: str) -> str:
    """Why a user did not become root: the last line of the become program, with printable characters only."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    said = [line for line in lines if line and not _OF_SSH.match(line)]
    last = "".join(char for char in said[-1] if char.isprintable()) if said else "no reason was given"
    return last[:_LENGTH].rstrip(". ")


STEPS: Dict[str, Step] = {
    "command.check": check_command,
    "image.distribute": distribute_image,
    "image.plan": plan_image,
    "root.check": check_root,
    "session.commit": commit_container,
    "settings.of_agent": settings_of_agent,
    "swarm.plan_join": plan_join,
    "swarm.plan_leave": plan_leave,
}
