# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A play whose hosts answer from a script; everything else of the conductor is real."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from played import Answer

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import step_of
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.conductor import Play
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.transfer_watch import TERMINAL
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import Reports

# By module: an answer, answers one after the other of which the last one repeats, or a function of host and options.
# These say where a step works.
_OF_PLACE = ("docker_host", "timeout", "state_dir")

Script = Mapping[str, Answer | list[Answer] | Callable[[str, Json], Answer]]


def reports_of(documents: Sequence[Json]) -> Reports:
    """The reports of agents from their documents."""
    return Reports(list(map(AgentReport.from_json, documents)))


class Hosts:
    """Takes the place of the connections. ``asked`` has host, step and parameters of each call.

    The script has an answer for a step, or for all steps of a noun; a function gets the ``verb`` beside the parameters.
    """

    def __init__(self, script: Script, variables: Mapping[str, Json], names: Sequence[str]) -> None:
        self.asked: list[tuple[str, str, Json]] = []
        self._names = names
        self._script = script
        self._variables = variables

    def step(self, host: str, call: Call[Json]) -> Json:
        name, args = call.step, call.params
        self.asked.append((host, name, json.loads(json.dumps(args))))
        noun, _dot, verb = name.partition(".")
        # The step itself must take these parameters.
        step = step_of(noun, verb)
        if step is None:
            raise KeyError(name)
        signature(step).bind(None, **{key: value for key, value in args.items() if key not in _OF_PLACE})
        known = self._script[name] if name in self._script else self._script[noun]
        if callable(known):
            answer = known(host, {**args, "verb": verb})
        elif isinstance(known, list):
            answer = known.pop(0) if len(known) > 1 else known[0]
        else:
            answer = known
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def host(self, name: str) -> Any:
        if name not in self._names:
            raise AnsibleError(f"the inventory has no host {name!r}")

        def fetch(call: Call[Json], path: str, _size: int) -> Json:
            Path(path).touch()
            return self.step(name, call)

        return SimpleNamespace(
            value=self._variables.get(name, {}).get,
            taken=list,
            counted_step=lambda call: self.step(name, call),
            fetch=fetch,
            send=lambda path: path,
        )

    def each(self, names: Sequence[str], function: Callable[[str], Any]) -> list[Any]:
        return [function(name) for name in names]

    def counted(self, names: Sequence[str], function: Callable[[str], Any]) -> dict[str, Any]:
        return {name: function(name) for name in names}

    def close(self) -> None:
        """Nothing is open."""


def conducted(
    script: Script,
    *names: str,
    check: bool = False,
    diff: bool = False,
    inventory: Mapping[str, Json] | None = None,
    **variables: Any,
) -> Any:
    """A play on these hosts, the first of which is the head. ``said`` has what it displays, ``asked`` its calls."""
    said: list[str] = []
    # As with any other callback than that of the collection, which tests of it leave behind.
    TERMINAL.phase = ""

    def display(line: str, stderr: bool = False) -> None:
        said.extend([] if stderr else [line])

    task_vars = {"ansible_play_hosts_all": list(names or ["a"]), "hostvars": inventory or {}, **variables}
    action = SimpleNamespace(
        _task=SimpleNamespace(check_mode=check, diff=diff, delegate_to=None, connection="ssh"),
        _templar=SimpleNamespace(template=lambda value: value),
        given={},
        task_vars=task_vars,
        value=task_vars.get,
        _loader=DataLoader(),
        _display=SimpleNamespace(display=display, v=lambda _line: None, verbosity=0),
    )
    play: Any = Play(action)  # type: ignore[arg-type]
    play.others = Hosts(script, inventory or {}, [*play.names, *(inventory or {})])
    play.said, play.asked = said, play.others.asked
    return play


def options_of(play: Any, step: str) -> list[Json]:
    """The parameters of each call of a step, in order."""
    return [options for _host, name, options in play.asked if name == step]


def changes_of(play: Any) -> list[Json]:
    """The changes of sessions that the head was asked to record, in order, each with its state."""
    return [{"state": options["state"], **options["change"]} for options in options_of(play, "session.record")]
