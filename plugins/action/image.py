# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``image``: gives the step the login for the registry of the image, and shows the bytes of the pull."""

from __future__ import annotations

from ..module_utils._shared.codec import ModuleResult
from ..module_utils._worker.module import at_least
from ..plugin_utils._hosts.action import ComputeAction
from ..plugin_utils._hosts.steps import IMAGE_PULL
from ..plugin_utils._session.images import login_to


class ActionModule(ComputeAction):
    """A user name in the task takes precedence over the login of the controller's Docker client."""

    def act(self) -> ModuleResult:
        options = self.checked()
        at_least(options, deadline=1, timeout=1)
        login = login_to(
            options["name"], options["registry"] or "", options["username"] or "", options["password"] or ""
        )
        pull = IMAGE_PULL(name=options["name"], deadline=options["deadline"], policy=options["pull"], **login)
        return self.counted_step(pull, options["agent"])
