# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of sessions.yml: one file without outside resources, that needs no server and trusts no text of a session."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import visible
from ..module_utils._core.units import show_time

_ROLE = Path(__file__).resolve().parents[2] / "roles" / "session"
_FILES = ("templates/sessions.html.j2", "files/sessions.css", "files/sessions.js")
_POLICY = "default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'"


def sessions_page(page: Json) -> str:
    """The page, with the texts and numbers of C(page_of).

    The policy in its head allows its style sheet and its script alone: whatever a name or a reason contains, a browser loads and
    runs nothing else. Every text is escaped, and its control characters are visible.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_shown)
    environment.filters["show_time"] = show_time
    template, style, script = ((_ROLE / name).read_text(encoding="utf-8") for name in _FILES)
    # Without its line breaks and its indentation.
    page_of = environment.from_string("".join(line.strip() for line in template.splitlines()))
    policy = _POLICY % (_digest(style), _digest(script))
    return page_of.render(page=page, style=Markup(style), script=Markup(script), policy=policy) + "\n"


def _shown(value: object) -> object:
    """A value as the page shows it. What changes the direction of text, or controls a terminal, becomes visible."""
    return value if isinstance(value, Markup) else visible(str(value))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
