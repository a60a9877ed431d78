# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: may change in any release.

"""A user's variables that refer to the container: ``<% rank %>`` in sandboxed Jinja2.

Ansible renders ``{{ }}`` in every variable before a task sees it, so the container's own values have marks of their own.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ansible_collections.cluster.compute.plugins.module_utils._errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._model import Container, Plan
from ansible_collections.cluster.compute.plugins.module_utils._request import Request
from ansible_collections.cluster.compute.plugins.module_utils._topology import members
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MARKS = {
    "variable_start_string": "<%",
    "variable_end_string": "%>",
    "block_start_string": "<%%",
    "block_end_string": "%%>",
    "comment_start_string": "<%#",
    "comment_end_string": "#%>",
}


def render_environment(request: Request, plan: Plan) -> List[Dict[str, str]]:
    """The user's variables of every container of a plan, in rank order."""
    return [_render(request.environment, _values(plan, container)) for container in plan.containers]


def check_environment(request: Request) -> None:
    """Refuse a template that is broken or names what there is not, before there is a plan."""
    hosts = [member.hostname for member in members(request.size)]
    gpus = ["GPU-%d" % number for number in range(int(request.gpus) or bool(request.gpus))]
    for member in members(request.size)[:2]:
        values = {"rank": member.rank, "local_rank": 0, "role": member.role, "index": member.index}
        _render(request.environment, {**values, "hostname": member.hostname, "size": request.size, "hosts": hosts, "gpu_ids": gpus})


def _values(plan: Plan, container: Container) -> Dict[str, Any]:
    return {
        "rank": container.rank,
        "local_rank": container.local_rank,
        "role": container.role,
        "index": container.index,
        "hostname": container.hostname,
        "size": plan.session.size,
        "hosts": [one.hostname for one in plan.containers],
        "gpu_ids": [gpu.id for gpu in container.resources.gpus],
    }


def _render(environment: Mapping[str, str], values: Mapping[str, Any]) -> Dict[str, str]:
    sandbox = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, **_MARKS)
    rendered = {}
    for name, text in environment.items():
        try:
            rendered[name] = sandbox.from_string(text).render(values)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            rule = "a value between <%% and %%> is an expression over %s; this one fails: %s"
            names = ", ".join(values)
            raise InputError("session_environment: %s" % name, text, rule % (names, error)) from error
    return rendered
