"""Quantities as a profile writes them, `"30ms"`, `"9mbit"`, `"5%"`, read into plain numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

__all__ = [
    "DELAY",
    "EVERY",
    "LENGTH",
    "MOMENT",
    "RATE",
    "SHARE",
    "SIZE",
    "BadValueError",
    "Count",
    "Mean",
    "Quantity",
    "quoted",
]

LONGEST_SHOWN: Final = 40
"""Characters of a wrong value that a message repeats."""

_NUMBER_AND_UNIT: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([A-Za-z%]{1,8})")


class BadValueError(ValueError):
    """What is wrong with a value and what to write; the reader adds the file and the key."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


def quoted(value: object) -> str:
    """The value as the message repeats it, however long or strange it is."""
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # an integer of more digits than Python prints
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A kind of quantity: its units, each worth so many of the base unit, and its bounds."""

    noun: str
    units: Mapping[str, float]
    example: str
    least: str
    most: str

    def read(self, value: object) -> float:
        """The value in the base unit. Raises `BadValueError`."""
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise BadValueError(
                f"{_kind(value)} is not {self.noun}", f'write it as in "{self.example}"'
            )
        if not isinstance(value, str):
            raise BadValueError(f"{quoted(value)} has no unit", self._with_unit())
        number, unit = self._split(value)
        amount = number * self.units[unit]
        if not self._bound(self.least) <= amount <= self._bound(self.most):
            raise BadValueError(
                f"{quoted(value)} is out of range", f"give from {self.least} to {self.most}"
            )
        return amount

    def _with_unit(self) -> str:
        return f'give it a unit, as in "{self.example}" ({", ".join(self.units)})'

    def _split(self, text: str) -> tuple[float, str]:
        found = _NUMBER_AND_UNIT.fullmatch(text.strip())
        if found is None:
            if text.strip().startswith("-"):
                raise BadValueError(
                    f"{quoted(text)} is negative", f"give from {self.least} to {self.most}"
                )
            if re.fullmatch(r"[0-9.]+", text.strip()):
                raise BadValueError(f"{quoted(text)} has no unit", self._with_unit())
            raise BadValueError(
                f"{quoted(text)} is not {self.noun}", f'write it as in "{self.example}"'
            )
        number, unit = found.groups()
        if unit not in self.units:
            near = get_close_matches(unit.lower(), self.units, n=1, cutoff=0.5)
            guess = f' (did you mean "{near[0]}"?)' if near else ""
            raise BadValueError(
                f'"{unit}" is not a unit of {self.noun}{guess}',
                f"the units are {', '.join(self.units)}",
            )
        return float(number), unit

    def _bound(self, text: str) -> float:
        number, unit = self._split(text)
        return number * self.units[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number that needs no unit."""

    noun: str
    least: int
    most: int

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadValueError(
                f"{quoted(value)} is not a number of {self.noun}",
                f"write a whole number from {self.least} to {self.most}, without quotes",
            )
        if not self.least <= value <= self.most:
            raise BadValueError(
                f"{quoted(value)} {self.noun} is out of range",
                f"give from {self.least} to {self.most}",
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean of counts: it may have a fraction, and needs no unit."""

    noun: str
    least: float
    most: float

    def read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadValueError(
                f"{quoted(value)} is not a mean number of {self.noun}",
                f"write a number from {self.least:g} to {self.most:g}, without quotes",
            )
        if not self.least <= value <= self.most:  # nan is in no range
            raise BadValueError(
                f"{quoted(value)} {self.noun} is out of range",
                f"give from {self.least:g} to {self.most:g}",
            )
        return float(value)


def _kind(value: object) -> str:
    names = {bool: "true or false", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time of day")


_SECONDS: Final = MappingProxyType({"us": 1e-6, "ms": 1e-3, "s": 1.0})
_BITS: Final = MappingProxyType({"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9})
_BYTES: Final = MappingProxyType({"B": 1.0, "kB": 1e3})

DELAY: Final = Quantity(noun="a delay", units=_SECONDS, example="30ms", least="0s", most="60s")
MOMENT: Final = Quantity(
    noun="a time since the start", units=_SECONDS, example="10s", least="0s", most="86400s"
)
LENGTH: Final = Quantity(
    noun="a length of time", units=_SECONDS, example="100ms", least="100us", most="86400s"
)
EVERY: Final = Quantity(noun="a period", units=_SECONDS, example="5s", least="1ms", most="86400s")
RATE: Final = Quantity(noun="a rate", units=_BITS, example="9mbit", least="1kbit", most="100gbit")
SHARE: Final = Quantity(
    noun="a share", units=MappingProxyType({"%": 0.01}), example="5%", least="0%", most="100%"
)
SIZE: Final = Quantity(noun="a size", units=_BYTES, example="3kB", least="1B", most="1000kB")
