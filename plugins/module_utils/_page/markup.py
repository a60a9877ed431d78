# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HTML that is safe by construction: every text and every attribute is escaped once, where it is put into an element."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import html

from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible

# Elements without content. Those of SVG need the slash: without it, what follows becomes their content.
_EMPTY = frozenset(("meta", "input", "rect", "line", "polyline"))


class Html(str):
    """Text that is HTML. Every other text is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(value: object) -> Html:
    """A value as HTML. Control characters, and those that change the direction of text, become visible.

    >>> escaped("<b>&\\x1b")
    '&lt;b&gt;&amp;\\\\x1b'
    """
    return value if isinstance(value, Html) else Html(html.escape(visible(str(value)), quote=True))


def joined(*parts: object) -> Html:
    """Parts one after the other; None is nothing."""
    return Html("".join(escaped(part) for part in parts if part is not None))


def element(tag: str, /, *children: object, **attributes: object) -> Html:
    """An element.

    An attribute that is None or False is left out, and True has no value. Underscores of its name become dashes; one at the
    end keeps it from being a word of Python.

    >>> element("a", "x < y", class_="b", data_row=True, title='"')
    '<a class="b" data-row title="&quot;">x &lt; y</a>'
    """
    given = [(key, value) for key, value in attributes.items() if value is not None and value is not False]
    texts = ["" if value is True else '="%s"' % escaped(value) for _key, value in given]
    opened = "".join(" %s%s" % (key.rstrip("_").replace("_", "-"), text) for (key, _value), text in zip(given, texts))
    if tag in _EMPTY:
        return Html("<%s%s/>" % (tag, opened))
    return Html("<%s%s>%s</%s>" % (tag, opened, joined(*children), tag))
