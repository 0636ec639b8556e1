"""Values of our own dataclasses, from JSON that may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

__all__ = ["LARGEST_NUMBER", "UnfitError", "built"]

T = TypeVar("T")

LARGEST_NUMBER: Final = 1e15
"""Nothing that is measured comes near; what is above it may not even be a float."""

_KINDS: Final = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


_LONGEST: Final = 200
"""Letters of an error: names in the file may be of any length."""


class UnfitError(ValueError):
    """Says where it is, and what."""

    def __init__(self, what: str) -> None:
        super().__init__(what if len(what) <= _LONGEST else f"{what[:_LONGEST]}...")


def built(kind: type[T], told: object) -> T:
    """A dataclass of this kind, with all within it. Raises `UnfitError`."""
    return cast(T, _built(kind, told, ""))


def _built(kind: Any, told: object, where: str) -> object:
    if is_dataclass(kind):
        return _record(cast(type, kind), told, where)
    origin, within = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(told, list):
            raise UnfitError(f"{where} is no list")
        return tuple(_built(within[0], each, f"{where}[{at}]") for at, each in enumerate(told))
    if origin is Mapping:
        if not isinstance(told, dict):
            raise UnfitError(f"{where} is no object")
        return {name: _built(within[1], each, f"{where}.{name}") for name, each in told.items()}
    if origin is UnionType:
        return None if told is None else _built(within[0], told, where)
    return _plain(kind, told, where)


def _record(kind: type, told: object, where: str) -> object:
    if not isinstance(told, dict):
        raise UnfitError(f"{where or 'it'} is no object")
    dot = f"{where}." if where else ""
    needed, hints = _fields(kind)
    for name in needed:
        if name not in told:
            raise UnfitError(f"{dot}{name} is missing")
    for name in told:
        if name not in hints:
            raise UnfitError(f"{dot}{name} is unknown")
    return kind(**{name: _built(hints[name], each, dot + name) for name, each in told.items()})


@lru_cache
def _fields(kind: Any) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """The names that must be there, and the type of each that may be."""
    needed = (
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )
    return tuple(needed), get_type_hints(kind)


def _plain(kind: type, told: object, where: str) -> object:
    # To Python, True is a number.
    wanted = (int, float) if kind is float else kind
    if not isinstance(told, wanted) or (isinstance(told, bool) and kind is not bool):
        raise UnfitError(f"{where} is not {_KINDS[kind]}")
    # The other way round, what is not a number would pass.
    if isinstance(told, int | float) and not -LARGEST_NUMBER <= told <= LARGEST_NUMBER:
        raise UnfitError(f"{where} is no number that was measured")
    return told
