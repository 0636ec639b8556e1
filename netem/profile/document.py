"""A profile's file as it was read: its values, not yet looked at, and how to find its traces."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netem.profile.errors import ProfileError

__all__ = ["Document", "parse_document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """`text_of` gives the text of a trace by the name the file has for it.

    It raises `BadValueError` (`netem.profile.units`) when there is no such text.
    """

    name: str
    file: str
    values: Mapping[str, object]
    text_of: Callable[[str], str]


def parse_document(text: str, *, name: str, file: str, text_of: Callable[[str], str]) -> Document:
    """The document in TOML `text`. Raises `ProfileError`."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(file, f"not TOML: {error}", "correct the line it names") from error
    except (RecursionError, ValueError) as error:
        raise ProfileError(
            file, "not TOML that can be read: too deep, or a number too long", "make it plain"
        ) from error
    return Document(name=name, file=file, values=values, text_of=text_of)
