# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of the modules as files, for the command ``cluster-compute``: they do not depend on the output of Ansible."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
from typing import Any

from ..module_utils._core.documents import Json

# The variable of the environment that names a private directory of the command.
VARIABLE = "CLUSTER_COMPUTE_RESULTS"
# What is for people or for Ansible itself.
_LEFT_OUT = frozenset({"deprecations", "exception", "invocation", "lines", "unprepared", "warnings"})


def write_result(task: Any, result: Json) -> None:
    """Write the result of a task to the directory that the environment names, by the name of its module."""
    directory = os.environ.get(VARIABLE)
    if not directory or task.no_log:
        return
    kept = {name: value for name, value in result.items() if name not in _LEFT_OUT and not name.startswith("_")}
    path = os.path.join(directory, str(task.action).rpartition(".")[2] + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file)
