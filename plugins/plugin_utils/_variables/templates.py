# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Environment variables that refer to their container: ``<% rank %>`` in sandboxed Jinja2.

Ansible renders ``{{ }}`` in every variable before a task sees it, so these expressions have other delimiters. They have bounds:
a sandbox forbids access, but not a loop without end or a text of many gigabytes. The expressions of a waiting session are
evaluated by the operator who schedules it, who may be another user.
"""

from __future__ import annotations

import re
import resource
import signal
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...module_utils._shared.documents.plan import Container, Plan
from ...module_utils._shared.documents.topology import Member
from ...module_utils._shared.errors import InputError
from ...module_utils._shared.names import check_environment_size, merged_environment
from ...module_utils._shared.paths import read
from ...module_utils._shared.planning.request import Request

SECONDS = 10
MEMORY = 256 << 20
LONGEST_NUMBER = 1 << 16  # bits
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


class BoundsError(ValueError):
    """An expression takes too long, or its result is too large."""


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """A sandbox whose numbers stay so small that no single operation on them takes long."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * (abs(right) if operator == "**" else 1) + right.bit_length()
            if bits > LONGEST_NUMBER:
                raise BoundsError("a number is too large")
        return super().call_binop(context, operator, left, right)


@contextmanager
def bounded() -> Iterator[None]:
    """Raise BoundsError or MemoryError in the block when it takes longer than SECONDS or more than MEMORY more bytes."""
    with _bounded_memory(), _bounded_time():
        yield


@contextmanager
def _bounded_time() -> Iterator[None]:
    """Limit the time of the block, except in other threads, which get no signals, and tasks with C(timeout), which use the timer."""
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise BoundsError("it takes longer than %d s" % SECONDS)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Without /proc, memory has no bound here."""
    used = int((read("/proc/self/statm").split() or ["0"])[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used + MEMORY
    if not used or 0 <= soft < wanted or 0 <= hard < wanted:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


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
    """The templates of each role: its own variables override or extend those of the session."""
    return {part.name: _compiled(merged_environment(request.environment, part.environment)) for part in request.parts}


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
    # No documented name is among them, and from functions such as lipsum, expressions have left earlier sandboxes.
    sandbox.globals.clear()
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
