"""Text before it is spoken: what is refused, and where a long one is cut. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from tenuto.errors import ErrorCode, RequestError

__all__ = ["MAX_CLAUSE_SIZE", "MAX_TEXT", "Clause", "clauses_from", "clean_text", "cut_clauses"]

MAX_TEXT = 20_000
"""Code points in one request: about 20 minutes of English."""

# In bytes of UTF-8 and not in code points, because a three-byte character is mostly a
# syllable: 80 of them take as long to say (21 s) as 240 Latin letters (16 s).
MAX_CLAUSE_SIZE = 240
"""Bytes of UTF-8 that are spoken at a time; one clause is what an engine holds ahead."""

# Where nothing breaks a text, an engine that spells it out has no word to stop at.
_MAX_UNBROKEN_SIZE = 60

# Beginners wait for one another, so each begins with one sentence; "Mr." and "1." are none.
_MIN_FIRST = 16

# One for one, so that offsets stay true. espeak-ng takes U+0001 for the start of a command,
# and C strings end at U+0000.
_CONTROLS = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (9, 10)}
_CONTROLS |= {0x85: "\n", 0x2028: "\n", 0x2029: "\n"}

_CLOSING = "\"')\\]}\u00bb\u2019\u201d\u300b\u300d\u300f\uff09"
# In the order of preference: where a voice pauses anyway, then between words.
_CUTS = (
    # What goes on in small letters was an abbreviation.
    re.compile(
        rf"[.!?\u2026\u0964\u061f][{_CLOSING}]*(?=\s+[^\sa-z])|[\u3002\uff01\uff1f][{_CLOSING}]*|\n"
    ),
    re.compile(rf"[,;:\u2013\u2014\u060c][{_CLOSING}]*(?=\s)|[\uff0c\uff1b\uff1a\u3001]"),
    re.compile(r"\s"),
)
_LOOK_AHEAD = 4
_JOINERS = "\u200d\ufe0e\ufe0f"


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a text, from `offset` (code points) on; `pause` where speech rests after it."""

    offset: int
    text: str
    pause: bool = True


def clean_text(text: str) -> str:
    """The text as it may be spoken, every code point at its old offset.

    Raises `RequestError`: TOO_LARGE beyond MAX_TEXT; BAD_TEXT where nothing but white
    space is left or a lone surrogate makes it no Unicode text at all.
    """
    if len(text) > MAX_TEXT:
        raise RequestError(
            ErrorCode.TOO_LARGE,
            f"the text has {len(text)} characters",
            remedy=f"send at most {MAX_TEXT} at a time",
            detail={"length": len(text), "limit": MAX_TEXT},
        )
    for offset, char in enumerate(text):
        if "\ud800" <= char <= "\udfff":
            raise RequestError(
                ErrorCode.BAD_TEXT,
                f"character {offset} of the text is half of a surrogate pair "
                f"(U+{ord(char):04X}), no character",
                remedy="send the text as UTF-8",
                detail={"offset": offset},
            )
    text = text.translate(_CONTROLS)
    if not text.strip():
        raise RequestError(
            ErrorCode.BAD_TEXT, "the text is empty", remedy="send at least one character"
        )
    return text


def cut_clauses(text: str) -> Iterator[Clause]:
    """Cut at the last sentence end that fits MAX_CLAUSE_SIZE, else at worse places.

    The first clause is one sentence, for the sake of whoever waits behind it. Together
    they hold every code point that is not white space, in order.
    """
    start, first = 0, True
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        end, pause = (first and _find_first(text, start)) or _find_cut(text, start)
        first = False
        yield Clause(start, text[start:end], pause)
        start = end


def clauses_from(clauses: Iterator[Clause], offset: int) -> Iterator[Clause]:
    """Those from the one on that holds this character, or stands behind it."""
    return (each for each in clauses if each.offset + len(each.text) > offset)


def _find_first(text: str, start: int) -> tuple[int, bool] | None:
    limit = _fitting(text, start, MAX_CLAUSE_SIZE)
    for end in _ends(_CUTS[0], text, start, limit):
        if end - start >= _MIN_FIRST:
            return end, True
    return None


def _find_cut(text: str, start: int) -> tuple[int, bool]:
    limit = _fitting(text, start, MAX_CLAUSE_SIZE)
    if limit == len(text):
        return limit, True
    for level, pattern in enumerate(_CUTS):
        if ends := _ends(pattern, text, start, limit):
            return ends[-1], level == 0
    end = limit = _fitting(text, start, _MAX_UNBROKEN_SIZE)
    while end > start + 1 and _is_attached(text[end]):
        end -= 1
    return (end if end > start + 1 else limit), False


def _ends(pattern: re.Pattern[str], text: str, start: int, limit: int) -> list[int]:
    # Some more, so that a look-ahead can see what stands behind the last character.
    found = pattern.finditer(text, start, limit + _LOOK_AHEAD)
    return [match.end() for match in found if match.end() <= limit]


def _fitting(text: str, start: int, most: int) -> int:
    """The end of the longest part of `most` bytes; the first character always fits."""
    size = 0
    for end in range(start, len(text)):
        size += len(text[end].encode())
        if size > most:
            return end
    return len(text)


def _is_attached(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char).startswith("M")
