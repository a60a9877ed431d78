# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``agent_step``: a step of the collection's own roles, on an agent or on the controller."""

from __future__ import annotations

from ..module_utils._shared.codec import ModuleResult
from ..module_utils._steps.step import HEAD_SPEC, OF_HEAD, noun_of, run_step
from ..plugin_utils._hosts.action import ComputeAction
from ..plugin_utils._hosts.call import Call, as_sent
from ..plugin_utils._hosts.runtime_scripts import runtime_scripts
from ..plugin_utils._session.controller_steps import STEPS

# The steps that count bytes in a file while they work.
_COUNTED = frozenset({"image.build", "image.commit", "image.fill", "image.pull"})


class ActionModule(ComputeAction):
    """Adds what the inventory says of the host, and the scripts of this release."""

    def act(self) -> ModuleResult:
        _valid, options = self.validate_argument_spec(argument_spec=dict(HEAD_SPEC))
        call, params = options["call"], {**options["params"], **options["secrets"]}
        if call in STEPS:
            return {"changed": False, **run_step(call, STEPS[call], self, params)}
        if call == "runtime.install":
            scripts = runtime_scripts()
            params = {"scripts": dict(scripts.texts), "applets": list(scripts.applets), **params}
        names = ("state_dir",) if noun_of(call) in OF_HEAD.nouns else ("docker_host", "timeout")
        place = {name: options[name] for name in names if options.get(name)}
        step = self.counted_step if call in _COUNTED else self.step
        return step(Call(call, {**params, **place}, as_sent), str(options["agent"]))
