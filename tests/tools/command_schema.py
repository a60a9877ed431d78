# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of what ``cluster-compute --json`` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/command.schema.json").read_text())


def checked(definition: str, text: str) -> Any:
    """The document, which must be the whole text and fit the definition."""
    document = json.loads(text)
    jsonschema.validate(document, {**SCHEMA, "$ref": f"#/$defs/{definition}"})
    return document
