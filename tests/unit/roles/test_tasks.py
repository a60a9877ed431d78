# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every supported ansible-core can load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROLES = Path(__file__).resolve().parents[3] / "roles"


@pytest.mark.parametrize("role", sorted(folder.name for folder in ROLES.iterdir()))
def test_no_role_imports_a_file_below_an_include_whose_name_is_a_template(role: str) -> None:
    """ansible-core 2.17 fails there: "Error when evaluating variable in dynamic parent include path"."""
    text = "\n".join(file.read_text() for file in (ROLES / role / "tasks").glob("*.yml"))
    assert not (re.search(r"include_tasks: .*{{", text) and "import_tasks:" in text)
