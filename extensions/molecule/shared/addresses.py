#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of the agents that create.yml created, as an inventory.

They are values, not templates: in a task that an agent delegates to another agent, a template would use the name of the first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

folder = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"], ".cache/molecule", os.environ["MOLECULE_SCENARIO_NAME"])
made = {path.name: {"ansible_host": path.read_text().strip()} for path in sorted(folder.glob("addresses/*"))}
print(json.dumps({"agents": {"hosts": sorted(made)}, "_meta": {"hostvars": made}}))
