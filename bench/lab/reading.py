"""Values of our own dataclasses, from JSON that may be anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from types import UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

__all__ = ["LARGEST_NUMBER", "UnfitError", "built"]

T = TypeVar("T")

LARGEST_NUMBER: Final = 1e15
"""Nothing that is measured comes near; what is above it may not even be a float."""

_KINDS: Final[Mapping[Any, str]] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


_LONGEST: Final = 200
"""Letters of an error: names in the file may be of any length."""


class UnfitError(ValueError):
    """Says where it is, and what. The place is put together only once something is wrong."""

    def __init__(self, what: str, where: str = "") -> None:
        told = f"{where.removeprefix('.') or 'it'} {what}"
        super().__init__(told if len(told) <= _LONGEST else f"{told[:_LONGEST]}...")
        self._what, self._where = what, where

    def within(self, step: str) -> UnfitError:
        return UnfitError(self._what, step + self._where)


def built(kind: type[T], told: object) -> T:
    """A dataclass of this kind, with all within it. Raises `UnfitError`."""
    return cast(T, _built(kind, told))


def _built(kind: Any, told: object) -> object:
    if kind in _KINDS:
        return _plain(kind, told)
    origin, within = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if told is None else _built(within[0], told)
    if origin is tuple:
        if not isinstance(told, list):
            raise UnfitError("is no list")
        return tuple(_items(within[0], told))
    if not isinstance(told, dict):
        raise UnfitError("is no object")
    if origin is Mapping:
        return _named(dict.fromkeys(told, within[1]), told)
    return _record(kind, told)


def _items(kind: Any, told: list[object]) -> Iterator[object]:
    for at, each in enumerate(told):
        try:
            yield _built(kind, each)
        except UnfitError as error:
            raise error.within(f"[{at}]") from None


def _named(kinds: Mapping[str, Any], told: Mapping[str, object]) -> dict[str, object]:
    found = {}
    for name, each in told.items():
        try:
            found[name] = _built(kinds[name], each)
        except UnfitError as error:
            raise error.within(f".{name}") from None
    return found


def _record(kind: Any, told: Mapping[str, object]) -> object:
    needed, hints = _fields(kind)
    for name in needed:
        if name not in told:
            raise UnfitError("is missing", f".{name}")
    for name in told:
        if name not in hints:
            raise UnfitError("is unknown", f".{name}")
    return kind(**_named(hints, told))


@lru_cache
def _fields(kind: Any) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """The names that must be there, and the type of each that may be."""
    needed = (
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )
    return tuple(needed), get_type_hints(kind)


def _plain(kind: type, told: object) -> object:
    # To Python, True is a number.
    wanted = (int, float) if kind is float else kind
    if not isinstance(told, wanted) or (isinstance(told, bool) and kind is not bool):
        raise UnfitError(f"is not {_KINDS[kind]}")
    # The other way round, what is not a number would pass.
    if isinstance(told, int | float) and not -LARGEST_NUMBER <= told <= LARGEST_NUMBER:
        raise UnfitError("is no number that was measured")
    return told
