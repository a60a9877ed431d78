# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Environment variables that refer to their container: ``<% rank %>`` in sandboxed Jinja2.

Ansible renders ``{{ }}`` in every variable before a task sees it, so these expressions have other delimiters.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from jinja2 import StrictUndefined, Template

from ..module_utils._core.errors import InputError
from ..module_utils._core.model import Container, Plan
from ..module_utils._core.topology import Member
from ..module_utils._planning.request import Request
from ..module_utils._planning.rules import check_environment_size
from ._bounded import BoundedSandbox, bounded

_MARKS = {
    "variable_start_string": "<%",
    "variable_end_string": "%>",
    "block_start_string": "<%%",
    "block_end_string": "%%>",
    "comment_start_string": "<%#",
    "comment_end_string": "#%>",
}
_NAMES = "rank, local_rank, role, index, hostname, size, hosts, gpu_ids"


Compiled = Dict[str, Tuple[str, Template]]


def render_environment(request: Request, plan: Plan) -> List[Dict[str, str]]:
    """The user's variables for each container of a plan, in rank order."""
    hosts = [container.hostname for container in plan.containers]
    with bounded():
        templates = _of_parts(request)
        return [
            _rendered(
                templates[request.part_of(container.role).name],
                _values(container, container.local_rank, hosts, [gpu.id for gpu in container.resources.gpus]),
            )
            for container in plan.containers
        ]


def check_environment(request: Request) -> None:
    """Refuse a template that is invalid or fails for any container; needs no plan."""
    hosts = [member.hostname for member in request.members]
    with bounded():
        templates = _of_parts(request)
        for member in request.members:
            part = request.part_of(member.role)
            gpus = ["GPU-%d" % number for number in range(int(part.gpus) or bool(part.gpus))]
            _rendered(templates[part.name], _values(member, member.rank, hosts, gpus))


def _of_parts(request: Request) -> Dict[str, Compiled]:
    """The templates of each role: its own variables override those of the session."""
    return {part.name: _compiled({**request.environment, **part.environment}) for part in request.parts}


def _values(container: Member | Container, local_rank: int, hosts: List[str], gpus: List[str]) -> Dict[str, Any]:
    return {
        "rank": container.rank,
        "local_rank": local_rank,
        "role": container.role,
        "index": container.index,
        "hostname": container.hostname,
        "size": len(hosts),
        "hosts": hosts,
        "gpu_ids": gpus,
    }


def _compiled(environment: Mapping[str, str]) -> Compiled:
    """The templates of the variables. The optimizer is off: it would evaluate constant expressions here, at every check."""
    sandbox = BoundedSandbox(undefined=StrictUndefined, optimized=False, **_MARKS)
    templates = {}
    for name, text in environment.items():
        with _refused(name, text):
            templates[name] = (text, sandbox.from_string(text))
    return templates


def _rendered(templates: Compiled, values: Mapping[str, Any]) -> Dict[str, str]:
    rendered = {}
    for name, (text, template) in templates.items():
        with _refused(name, text):
            rendered[name] = template.render(values)
            # A rendered value follows the same rule as a plain one.
            if re.search(r"[\x00-\x08\x0a-\x1f]", rendered[name]):
                raise ValueError("the result has a newline or control character")
    check_environment_size("session_environment", rendered)
    return rendered


@contextmanager
def _refused(name: str, text: str) -> Iterator[None]:
    """Turn a template's failure into an InputError with the variable, its value and the reason."""
    try:
        yield
    except Exception as error:
        # The expression of a user may raise anything.
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        rule = f"the text between <% and %> must be a valid expression over {_NAMES}; the error is: {reason}"
        raise InputError(f"session_environment: {name}", text, rule) from error
