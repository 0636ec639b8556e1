"""Reading single values out of a layer, with errors that name the file and the key."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from netem.profile.errors import ProfileError
from netem.profile.keys import NEEDS, nearest
from netem.profile.layers import Layer, Said
from netem.profile.units import BadValueError, Quantity, quoted

__all__ = ["check_needs", "choice", "flag", "inner", "read", "reading"]

T = TypeVar("T")
D = TypeVar("D")


def check_needs(layer: Layer) -> None:
    """Raise `ProfileError` for a key that means nothing without another."""
    for key, said in layer.items():
        needed = NEEDS.get(key, ())
        if needed and not any(other in layer for other in needed):
            raise said.error(
                f"{key} means nothing without {' or '.join(needed)}",
                f"add {' or '.join(needed)}, or take {key} out",
            )


def reading(said: Said, reader: Callable[[object], T]) -> T:
    """`reader` on what was said, its `BadValueError` made a `ProfileError`."""
    try:
        return reader(said.value)
    except BadValueError as mistake:
        raise said.error(mistake.what, mistake.remedy) from mistake


def read(layer: Layer, key: str, reader: Callable[[object], T], default: D) -> T | D:
    said = layer.get(key)
    return default if said is None else reading(said, reader)


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValueError(f"{quoted(value)} is neither yes nor no", "write true or false")
    return value


def choice(*words: str) -> Callable[[object], str]:
    """A reader of one of `words`."""

    def reader(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            near = nearest(value, words) if isinstance(value, str) else ""
            listed = " or ".join(f'"{word}"' for word in words)
            raise BadValueError(f"{quoted(value)} is not known here{near}", f"write {listed}")
        return value

    return reader


def inner(
    said: Said, value: object, quantities: Mapping[str, Quantity], example: str
) -> dict[str, float]:
    """The quantities of an inline table, those that are there. Raises `ProfileError`."""
    if not isinstance(value, dict):
        raise said.error(f"{quoted(value)} is not a table", f"write it as in {example}")
    amounts: dict[str, float] = {}
    for key, amount in value.items():
        if key not in quantities:
            raise _at(said, key).error(
                f"there is no such key{nearest(key, quantities)}",
                f"it takes {', '.join(quantities)}, as in {example}",
            )
        amounts[key] = reading(_at(said, key)._replace(value=amount), quantities[key].read)
    return amounts


def _at(said: Said, key: str) -> Said:
    return said._replace(key=f"{said.key}.{key}")


def missing(said: Said, key: str, example: str) -> ProfileError:
    return said.error(f"{key} is missing", f"write it as in {example}")
