"""Parameters as values: what they are called and may be. Parsing, refusals and lists read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from tenuto.errors import ErrorCode, RequestError

__all__ = ["Parameter", "Real", "SourceKind", "Text", "Whole", "read_number", "refuse"]

_SHOWN = 40
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?", re.ASCII)

Fact = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Parameter:
    """`help` says what it does; `unit` and `values` say what may be given."""

    name: str
    help: str

    @property
    def values(self) -> str:
        """What may be given, for people."""
        raise NotImplementedError

    def facts(self) -> dict[str, Fact]:
        """The same for machines."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Text(Parameter):
    """Any text, which the source itself looks at."""

    default: str | None = None
    form: str = "text"
    required: bool = False

    @property
    def values(self) -> str:
        return self.form

    def read(self, request: Mapping[str, str]) -> str | None:
        """As it was given, else the default; refused where it is needed and missing."""
        if self.required and self.name not in request:
            refuse(f"{self.name}= is missing", f"a source={request.get('source')} needs it")
        return request.get(self.name, self.default)

    def needed(self, request: Mapping[str, str]) -> str:
        """The text of a parameter that is required or has a default."""
        text = self.read(request)
        assert text is not None
        return text

    def facts(self) -> dict[str, Fact]:
        return {
            "name": self.name,
            "type": "text",
            "values": self.form,
            "default": self.default,
            "required": self.required,
            "help": self.help,
        }


@dataclass(frozen=True, slots=True)
class Real(Parameter):
    """A number from `low` to `high`; `bound` says in words where the end is nearer."""

    low: float
    high: float
    default: float | None = None
    unit: str = ""
    bound: str = ""

    @property
    def values(self) -> str:
        high = self.bound or f"{self.high:,.10g} {self.unit}"
        return f"{self.low:,.10g} to {high}".rstrip()

    def read(self, request: Mapping[str, str], *, high: float | None = None) -> float:
        """The number, else the default; `high` is what other parameters leave of the range."""
        text = request.get(self.name)
        if text is None:
            assert self.default is not None
            return self.default
        return self._number(text, self.high if high is None else high)

    def facts(self) -> dict[str, Fact]:
        facts: dict[str, Fact] = {
            "name": self.name,
            "type": self._type,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "default": self.default,
            "required": False,
            "help": self.help,
        }
        return {**facts, "bound": self.bound} if self.bound else facts

    @property
    def _type(self) -> str:
        return "number"

    def _number(self, text: str, high: float) -> float:
        number = read_number(text)
        if number is None or not self.low <= number <= high:
            refuse(
                f"{self.name}={text[:_SHOWN]!r} cannot be used",
                f"give a number {self.low:.10g} to {high:.10g}",
            )
        return number


@dataclass(frozen=True, slots=True)
class Whole(Real):
    """The same without a fraction."""

    def count(self, request: Mapping[str, str]) -> int:
        """The number, else the default."""
        number = self.maybe(request)
        assert number is not None
        return number

    def maybe(self, request: Mapping[str, str]) -> int | None:
        """The number, else the default, which may be none."""
        text = request.get(self.name)
        if text is None:
            return None if self.default is None else int(self.default)
        value = self._number(text, self.high)
        if value != int(value):
            refuse(
                f"{self.name}={text} is no whole number",
                f"give {self.low:.10g} to {self.high:.10g}",
            )
        return int(value)

    @property
    def _type(self) -> str:
        return "whole number"


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source; `implied_by` are the parameters that call for it without `source=`."""

    name: str
    help: str
    parameters: tuple[Text | Real, ...] = ()
    implied_by: tuple[str, ...] = ()
    needs: str = ""
    """The option without which a server has none of it."""
    for_tests: bool = False
    live: bool | None = False
    """None: the operator chooses."""

    @property
    def names(self) -> frozenset[str]:
        """All parameters it takes."""
        return frozenset({"source", *(parameter.name for parameter in self.parameters)})


def read_number(text: str) -> float | None:
    """A number without a sign, in digits and perhaps a point; None where it is none."""
    # float() would also take "nan", "1e999", "1_0", " 1" and digits of other scripts.
    return float(text) if _NUMBER.fullmatch(text) else None


def refuse(message: str, remedy: str) -> NoReturn:
    """A parameter that cannot be used: the client's mistake."""
    raise RequestError(ErrorCode.BAD_REQUEST, message, remedy=remedy)
