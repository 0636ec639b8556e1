"""From JSON that may be anything to frozen dataclasses, or to one sentence on what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["UnfitError", "read", "shown"]

T = TypeVar("T")

_MOST: Final = 1e15
"""Of any number: sums and squares of such ones are still numbers."""
_LETTERS: Final = 40


class UnfitError(Exception):
    """`where` is the path to what is wrong, `why` the rest of the sentence."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(why)
        self.why, self.where = why, where

    def __str__(self) -> str:
        return f"{self.where.removeprefix('.')} {self.why}".strip()


def read(kind: type[T], told: object) -> T:
    """A `kind`, which is a dataclass of such, and of texts, numbers, tuples and mappings of texts.

    What has a default may be missing; what is not known may not be there. Raises `UnfitError`.
    """
    value: T = _read(kind, told)
    return value


def shown(value: object) -> str:
    """Short and harmless."""
    text = json.dumps(value)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."


def _read(kind: Any, told: object) -> Any:
    if kind is float:
        return float(_number(told))
    if isinstance(kind, UnionType):
        (other,) = (each for each in get_args(kind) if each is not type(None))
        return None if told is None else _read(other, told)
    if kind is int:
        if isinstance(_number(told), float):
            raise UnfitError(f"is {shown(told)}, no whole number")
        return told
    if kind in _PLAIN:
        return _of(kind, told, _PLAIN[kind])
    if is_dataclass(kind):
        return _object(kind, _of(dict, told, "object"))
    if get_origin(kind) is tuple:
        return _items(get_args(kind)[0], _of(list, told, "list"))
    assert get_origin(kind) is Mapping, kind
    named = _of(dict, told, "object")
    return {name: _within(f".{name}", str, each) for name, each in named.items()}


_PLAIN: Final = {str: "text", bool: "true or false"}


def _of(kind: type[T], told: object, name: str) -> T:
    if not isinstance(told, kind):
        raise UnfitError(f"is {shown(told)}, no {name}")
    return told


def _number(told: object) -> int | float:
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise UnfitError(f"is {shown(told)}, no number")
    if isinstance(told, float) and not math.isfinite(told):
        raise UnfitError(f"is {shown(told)}, no number")
    if abs(told) > _MOST:
        raise UnfitError(f"is {shown(told)}, too large")
    return told


def _items(kind: Any, told: list[object]) -> tuple[Any, ...]:
    return tuple(_within(f"[{place}]", kind, each) for place, each in enumerate(told))


def _object(kind: Any, told: dict[str, object]) -> Any:
    known = _kinds(kind)
    for name in told:
        if name not in known:
            raise UnfitError("is not known here", "." + shown(name).strip('"'))
    for name, (_, needed) in known.items():
        if needed and name not in told:
            raise UnfitError("is missing", f".{name}")
    return kind(**{name: _within(f".{name}", known[name][0], each) for name, each in told.items()})


def _within(step: str, kind: Any, told: object) -> Any:
    try:
        return _read(kind, told)
    except UnfitError as error:
        raise UnfitError(error.why, step + error.where) from None


@cache
def _kinds(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Of each field, and whether it has to be there."""
    hints = get_type_hints(kind)
    return {
        each.name: (
            hints[each.name],
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
    }
