# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import resource
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import templates as limits
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.templates import (
    MEMORY,
    BoundedSandbox,
    BoundsError,
    bounded,
    check_environment,
    render_environment,
)


def rendered(text: str, size: int = 4, placement: str = "aabb", **variables: object) -> list[str]:
    asked = request(environment={"X": text}, cluster_size=size, cluster_mode="multi-node", **variables)
    check_environment(asked)
    return [one["X"] for one in render_environment(asked, plan(asked, placement))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<% rank %>", ["0", "1", "2", "3"]),
        ("<%rank%>", ["0", "1", "2", "3"]),
        ("<% local_rank %>", ["0", "1", "0", "1"]),
        ("<% role %>-<% index %>", ["main-1", "sub-1", "sub-2", "sub-3"]),
        ("/out/<% hostname %>.log", ["/out/main1.log", "/out/sub1.log", "/out/sub2.log", "/out/sub3.log"]),
        ("<% size %>", ["4"] * 4),
        ("<% hosts | join(' ') %>", ["main1 sub1 sub2 sub3"] * 4),
        ("<% hosts[(rank + 1) % size] %>", ["sub1", "sub2", "sub3", "main1"]),
        ("<% '%02d' % rank %>", ["00", "01", "02", "03"]),
        ("<% gpu_ids | join(',') %>", [""] * 4),
        ("<%% if rank == 0 %%>first<%% else %%>other<%% endif %%>", ["first", "other", "other", "other"]),
        ("a<%# a comment #%>b", ["ab"] * 4),
        ("<% '<%' %> % > <", ["<% % > <"] * 4),
        ("", [""] * 4),
    ],
)
def test_values_that_refer_to_the_container(text: str, expected: list[str]) -> None:
    assert rendered(text) == expected


def test_devices_are_those_of_the_container() -> None:
    assert rendered("<% gpu_ids | join(',') %>", 2, "ab", gpus=2) == ["a-GPU-0,a-GPU-1", "b-GPU-0,b-GPU-1"]


@pytest.mark.parametrize(
    "text",
    [
        "{{ rank }}",
        "{% if x %}",
        "{# x #}",
        "${HOME}",
        "100%",
        "a%b",
        "<b>",
        "%>",
        "$(rm -rf /)",
        "a=b;c",
        "\\n",
        "ü",
        "a\tb",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert rendered(text, 1, "a") == [text]


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])).filter(lambda text: "<%" not in text))
def test_any_text_without_a_mark_stays_as_it_is(text: str) -> None:
    assert rendered(text, 1, "a") == [text]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<% rank", "unexpected end of template"),
        ("<% rank + %>", "unexpected 'end of print statement'"),
        ("<% ranks %>", "'ranks' is undefined"),
        ("<% hosts[rank + 1] %>", "list object has no element 3"),
        ("<% gpu_ids[0] %>", "list object has no element 0"),
        ("<% rank / 0 %>", "division by zero"),
        ("<% rank + 'a' %>", "unsupported operand type(s) for +: 'int' and 'str'"),
        ("<%% for %%>", "Expected an expression, got 'end of statement block'"),
        ("<% rank | nope %>", "No filter named 'nope'"),
        ("<%% include 'x' %%>", "no loader for this environment specified"),
        ("<% '\\n' %>", "the result has a newline or control character"),
        ("<% '\\0' %>", "the result has a newline or control character"),
        ("<% " + "(" * 500 + " %>", "too many nested parentheses"),
    ],
)
def test_a_broken_template_is_refused_before_there_is_a_plan(text: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        check_environment(request(environment={"X": text}, cluster_size=3))
    message = refused.value.message
    assert message.startswith("session_environment: X: '%s" % text[:40].replace("\\", "\\\\")) or "'" in text
    assert (
        "must be a valid expression over rank, local_rank, role, index, hostname, size, hosts, gpu_ids; the error is: "
        in message
    )
    if "(" * 500 not in text:
        assert why.rstrip(".") in message


@pytest.mark.parametrize(
    "text",
    [
        "<% ''.__class__ %>",
        "<% ''['__class__'] %>",
        "<% ''|attr('__class__') %>",
        "<% hosts.__class__.__mro__ %>",
        "<% ().__class__.__bases__[0].__subclasses__() %>",
        "<% self.__init__.__globals__ %>",
        "<% cycler.__init__.__globals__.os %>",
        "<% lipsum.__globals__['os'].popen('id').read() %>",
        "<% '{0.__class__}'.format(rank) %>",
        "<% hosts.append('evil') %>",
        "<% range(10**9) | list %>",
        "<% namespace.__init__ %>",
        # Names that Jinja2 itself defines: none is documented, and functions have led out of sandboxes.
        "<% dict(a=rank) %>",
        "<% joiner() %>",
    ],
)
def test_nothing_leads_out_of_the_sandbox(text: str) -> None:
    asked = request(environment={"X": text}, cluster_size=2)
    with pytest.raises(InputError):
        check_environment(asked)
    with pytest.raises(InputError):
        render_environment(asked, plan(asked))


def test_a_template_that_fails_in_the_last_container_only_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="list object has no element 12"):
        check_environment(request(environment={"NEXT": "<% hosts[rank + 1] %>"}, cluster_size=12))


@pytest.mark.parametrize(
    "text",
    [
        '<% ("%0700000000d"|format(1))|length %>',
        '<% ("a"|center(700000000))|length %>',
    ],
)
def test_a_constant_expression_has_the_bounds_of_every_other(text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="MemoryError"):
        check_environment(request(environment={"X": text}, cluster_size=2))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY >> 10


def test_names_of_variables_are_no_templates() -> None:
    asked = request(environment={"A": "1", "B": "<% rank %>"}, cluster_size=2)
    assert render_environment(asked, plan(asked)) == [{"A": "1", "B": "0"}, {"A": "1", "B": "1"}]


@pytest.mark.parametrize("expression", ["9**(9**9)", "2**(10**9)", "(2**60000)*(2**60000)"])
def test_a_number_that_takes_long_to_compute_is_refused(expression: str) -> None:
    with pytest.raises(BoundsError, match="too large"):
        BoundedSandbox().from_string("{{ %s }}" % expression).render()


@pytest.mark.parametrize(
    ("expression", "text"), [("2**10", "1024"), ("3 * 4", "12"), ("'a' * 3", "aaa"), ("0**0", "1")]
)
def test_other_numbers_are_computed(expression: str, text: str) -> None:
    assert BoundedSandbox().from_string("{{ %s }}" % expression).render() == text


@pytest.mark.parametrize(
    "expression", ["'x' * 10**10", "[0] * 10**10", "'x'.ljust(10**10)", "'{:>9999999999}'.format(1)"]
)
def test_a_result_of_gigabytes_is_refused(expression: str) -> None:
    with pytest.raises(MemoryError), bounded():
        BoundedSandbox().from_string("{{ %s }}" % expression).render()


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.1)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(BoundsError, match="takes longer"), bounded():
        BoundedSandbox().from_string(loops).render()


def test_the_bounds_end_with_the_block() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)
    with bounded():
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_the_timer_of_a_task_stays() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with bounded():
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
