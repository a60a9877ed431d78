# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A step with its parameters, as the controller carries it to a host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Concatenate, Generic, ParamSpec, TypeVar, overload

from ...module_utils._shared.codec import Document, Json

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A step with its parameters. ``read`` makes its result of what a host has sent, or refuses that with the name of the host."""

    step: str
    params: Json
    read: Callable[[Json, str], Result] = field(compare=False)

    def with_params(self, **params: Any) -> Call[Result]:
        """The same call with parameters that only the connection to the host knows, such as a path there."""
        return replace(self, params={**self.params, **params})


def as_sent(document: Json, _host: str) -> Json:
    return document


class Step(Generic[Params, Result]):
    """A step. ``function`` names it, as ``lambda: containers.created`` does, and is never called: the type checker reads it.

    ``read`` is that of its calls. Without it, the result is the dictionary that the host has sent.
    """

    @overload
    def __init__(self, function: Callable[[], Callable[Concatenate[Any, Params], Result]]) -> None: ...

    @overload
    def __init__(
        self, function: Callable[[], Callable[Concatenate[Any, Params], Any]], read: Callable[[Json, str], Result]
    ) -> None: ...

    def __init__(self, function: Callable[[], Any], read: Callable[[Json, str], Any] = as_sent) -> None:
        self.name = ".".join(function.__code__.co_names)
        self._read = read

    def __call__(self, *_place: Params.args, **params: Params.kwargs) -> Call[Result]:
        """The step with these parameters, all of which are given by name."""
        return Call(self.name, {name: _encoded(value) for name, value in params.items()}, self._read)


def _encoded(value: Any) -> Any:
    if isinstance(value, Document):
        return value.to_parameter()
    return [_encoded(one) for one in value] if isinstance(value, (list, tuple)) else value
