# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents, which the parts of the collection exchange as JSON: their digests, dataclasses as documents, and texts that occur often.

The containers of a session share long texts, lists of hostnames most of all: a document has each of them once.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import abc
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Type, TypeVar, Union, get_type_hints

Json = Dict[str, Any]
# The result of a module or an action, as Ansible takes it.
ModuleResult = Dict[str, Any]
# A number of JSON as it is: an integer stays one.
Number = Union[int, float]

# The metadata of a field that no digest includes, because it may change while the thing stays the same.
NOT_IN_DIGEST: Mapping[str, Any] = {"uncounted": True}
# The key of a field's metadata that holds the attributes of its variable.
DECLARATION = "declaration"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Document:
    """A dataclass that is a document: its fields are the keys."""

    @classmethod
    def from_json(cls: Type[Value], data: Mapping[str, Any]) -> Value:
        return decoded(cls, data)

    @property
    def written(self) -> Mapping[str, Any]:
        """The keys of the document with their values."""
        return vars(self)

    def to_json(self) -> Json:
        """Plain lists and dicts, as JSON gives them back. ``asdict`` is slower: it copies every text."""
        made: Json = json.loads(json.dumps(self, default=_plain))
        return made

    @classmethod
    def from_parameter(cls: Type[Value], value: Any) -> Value:
        known: Any = cls
        made: Value = known.from_json(value)
        return made

    def to_parameter(self) -> Any:
        """The document as a parameter of a step."""
        return self.to_json()


def _plain(value: Any) -> Mapping[str, Any]:
    """A part of a document that JSON does not know."""
    if isinstance(value, Document):
        return dict(value.written)
    return vars(value) if is_dataclass(value) else dict(value)


def decoded(kind: Type[Value], data: Mapping[str, Any]) -> Value:
    """A dataclass from its document: each value in the type of its field.

    A field that is missing or null has its default, and other keys do not count. Raises TypeError or ValueError for a document without
    a field that has no default, or with a value that has no such type.
    """
    if not isinstance(data, dict):
        raise TypeError("a document must be a dictionary")
    known: Any = kind
    try:
        return kind(**{name: read(data[name]) for name, read in _readers(known).items() if data.get(name) is not None})
    except OverflowError as error:  # an infinite number, which JSON can have
        raise ValueError(str(error)) from None


@lru_cache(maxsize=None)
def _readers(kind: type) -> Dict[str, Callable[[Any], Any]]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: Any) -> Callable[[Any], Any]:
    """The function that reads a value of a type. Python 3.8 cannot evaluate ``int | None``: a document has ``Optional[int]``."""
    origin = getattr(hint, "__origin__", None)
    if hint is Any or (origin is Union and hint.__args__[:2] == (int, float)):
        return lambda value: value
    if origin is tuple:
        part = _reader(hint.__args__[0])
        return lambda value: tuple(map(part, value or ()))
    if origin is Union:
        return _reader(hint.__args__[0])
    if origin is abc.Mapping and hasattr(hint.__args__[1], "from_json"):
        part = hint.__args__[1].from_json
        return lambda value: {name: part(one) for name, one in value.items()}
    found: Callable[[Any], Any] = dict if origin else getattr(hint, "from_json", hint)
    return found


def subset(thing: object, *names: str) -> Json:
    """Some attributes of a thing, by name.

    >>> subset(range(1, 5), "start", "stop")
    {'start': 1, 'stop': 5}
    """
    return {name: getattr(thing, name) for name in names}


def digest(document: object) -> str:
    """A short stable digest of a JSON document: equal documents, equal digests."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def non_default_fields(value: Any, uncounted: bool = False) -> Any:
    """A dataclass as a document of the fields that differ from their defaults and count in digests, or with ``uncounted`` of all such.

    A new field has its default in everything that exists, and so changes no digest.
    """
    if is_dataclass(value):
        parts = ((name, getattr(value, name), default) for name, default in _defaults(value.__class__, uncounted))
        return {name: non_default_fields(part, uncounted) for name, part, default in parts if part != default}
    if isinstance(value, abc.Mapping):
        return {name: non_default_fields(part, uncounted) for name, part in value.items()}
    return [non_default_fields(part, uncounted) for part in value] if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=None)
def _defaults(kind: type, uncounted: bool) -> List[Tuple[str, Any]]:
    counted = (one for one in fields(kind) if uncounted or not NOT_IN_DIGEST.items() <= one.metadata.items())
    return [(one.name, one.default if one.default_factory is MISSING else one.default_factory()) for one in counted]


Texts = Mapping[str, str]
# A shorter text costs less where it is.
LEAST = 32
# The texts of a container in the document of a plan.
_NAMES = ("environment", "labels")


def split(maps: Sequence[Texts]) -> Tuple[Dict[str, str], List[Dict[str, str]]]:
    """The beginning that the values of a name share, and each map with only the rest of them.

    >>> split([{"A": "x" * 40 + "1", "B": "1"}, {"A": "x" * 40 + "2", "B": "2"}])[1]
    [{'A': '1', 'B': '1'}, {'A': '2', 'B': '2'}]
    """
    values: Dict[str, List[str]] = {}
    for texts in maps:
        for name, text in texts.items():
            values.setdefault(name, []).append(text)
    common = {name: _beginning(texts) for name, texts in values.items() if len(texts) > 1}
    shared = {name: text for name, text in common.items() if len(text) >= LEAST}
    return shared, [{name: text[len(shared.get(name, "")) :] for name, text in texts.items()} for texts in maps]


def _beginning(texts: Sequence[str]) -> str:
    """The longest text with which all begin: that of the first and the last in order."""
    first, last = min(texts), max(texts)
    same, most = 0, len(first)
    while same < most:
        middle = (same + most + 1) // 2
        same, most = (middle, most) if last.startswith(first[same:middle], same) else (same, middle - 1)
    return first[:same]


def joined(shared: Texts, rest: Texts) -> Dict[str, str]:
    """A map as it was.

    >>> joined({"A": "long text, "}, {"A": "and its end", "B": "b"})
    {'A': 'long text, and its end', 'B': 'b'}
    """
    return {name: shared.get(name, "") + text for name, text in rest.items()}


def sealed(document: Any) -> str:
    """A document as base64, so that no part of it equals another value when Ansible censors results.

    >>> unsealed(sealed({"lab": "0f"}))
    {'lab': '0f'}
    """
    return base64.b64encode(json.dumps(document).encode()).decode()


def unsealed(text: str) -> Any:
    """The document that ``sealed`` has made base64. A ValueError if the text is something else."""
    return json.loads(base64.b64decode(text, validate=True))


@dataclass(frozen=True)
class Sealed(Document):
    """A document with secrets, which is sent as one such text."""

    @classmethod
    def from_parameter(cls: Type[Value], value: Any) -> Value:
        return decoded(cls, unsealed(value))

    def to_parameter(self) -> str:
        return sealed(self.to_json())


def shortened(document: Dict[str, Any]) -> Dict[str, Any]:
    """The document of a plan with the texts that its containers share in one place."""
    shared: Dict[str, Any] = {}
    containers = [dict(container) for container in document["containers"]]
    for name in _NAMES:
        texts, rests = split([container[name] for container in containers])
        if texts:
            shared[name] = texts
            for container, rest in zip(containers, rests):
                container[name] = rest
    return {**document, "containers": containers, **({"shared": shared} if shared else {})}


def completed(document: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The containers of such a document, with all of their texts."""
    shared = document.get("shared") or {}
    return [
        {**container, **{name: joined(texts, container.get(name) or {}) for name, texts in shared.items()}}
        for container in document["containers"]
    ]
