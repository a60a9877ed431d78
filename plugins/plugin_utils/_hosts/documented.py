# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of an action, as the documentation of its module declares them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Mapping

import yaml

from ...module_utils._shared.codec import Json

_PLUGINS = __package__.rsplit(".", 2)[0]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ATTRIBUTES = ("type", "elements", "choices", "default", "required")


@lru_cache(maxsize=None)
def documented(module: str) -> Mapping[str, Any]:
    """The options of a module and of its fragments, as Ansible specifies arguments."""
    document = _loaded(f"modules.{module}", "DOCUMENTATION")
    options: Json = {}
    for fragment in document["extends_documentation_fragment"]:
        file, _dot, part = fragment.split(".", 2)[2].partition(".")
        options.update(
            _loaded(f"doc_fragments.{file}", f"ModuleDocFragment.{part.upper() or 'DOCUMENTATION'}")["options"]
        )
    return _specified({**options, **document.get("options", {})})


def _loaded(file: str, name: str) -> Json:
    text: Any = import_module(f"{_PLUGINS}.{file}")
    for part in name.split("."):
        text = getattr(text, part)
    return dict(yaml.load(text, Loader=_LOADER))


def _specified(options: Json) -> Json:
    return {
        name: {
            **{key: one[key] for key in _ATTRIBUTES if key in one},
            **({"options": _specified(one["suboptions"])} if "suboptions" in one else {}),
        }
        for name, one in options.items()
    }
