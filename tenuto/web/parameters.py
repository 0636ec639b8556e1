"""What a request asks for, as a flat mapping of strings, strictly read."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from tenuto.errors import ErrorCode, RequestError
from tenuto.session import MAX_LEAD, MIN_LEAD
from tenuto.sources.parameters import read_number

__all__ = ["BODY_DEADLINE", "MAX_BODY", "MOST_FRAMES", "Parameters", "read_parameters"]

MAX_BODY = 256 * 1024
"""Bytes of a JSON body: 20,000 code points of text, each escaped, and the rest."""

BODY_DEADLINE = 10.0
"""Seconds from the request's head to the end of its body."""

MOST_FRAMES = 10
"""Frames that travel together, at most: 200 ms."""

_LISTENER_LENGTH = 64
_DIGITS = 20


class Parameters:
    """The parameters of one request; each is taken once, and leftovers are refused."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)

    def lead(self, default: float | None) -> float | None:
        """Seconds, or None for `max`: unpaced."""
        text = self.values.pop("lead", None)
        if text is None:
            return default
        if text == "max":
            return None
        seconds = read_number(text)
        if seconds is None or not MIN_LEAD <= seconds <= MAX_LEAD:
            raise _bad("lead", text, f"{MIN_LEAD:g} to {MAX_LEAD:g} seconds, or max")
        return seconds

    def chunk(self) -> int | None:
        """How many frames are to travel together, or None for what the door likes."""
        text = self.values.pop("chunk", None)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) <= 3):
            raise _bad("chunk", text, f"1 to {MOST_FRAMES} frames")
        frames = int(text)
        if not 1 <= frames <= MOST_FRAMES:
            raise _bad("chunk", text, f"1 to {MOST_FRAMES} frames")
        return frames

    def mode(self) -> bool | None:
        """True for `live`, False for `gapless`, None for what suits the session."""
        text = self.values.pop("mode", None)
        if text not in (None, "live", "gapless"):
            raise _bad("mode", text, "live or gapless")
        return None if text is None else text == "live"

    def listener(self, default: str) -> str:
        """The client's own name for this listener."""
        text = self.values.pop("listener", default)
        if not 0 < len(text) <= _LISTENER_LENGTH or not text.isprintable():
            raise _bad("listener", text, f"1 to {_LISTENER_LENGTH} printable characters")
        return text

    def number(self, name: str) -> int | None:
        """A whole number >= 0, or None where it is absent."""
        text = self.values.pop(name, None)
        if text is None:
            return None
        # isdecimal alone would take other scripts' digits; 2**62 is what a record can say.
        if not (text.isascii() and text.isdecimal()) or len(text) > 18:
            raise _bad(name, text, "a whole number from 0 on")
        return int(text)

    def refuse_others(self, known: Iterable[str]) -> None:
        """`RequestError` for a name that nobody would look at."""
        names = sorted(known)
        for name in self.values:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(names)}"
                raise RequestError(
                    ErrorCode.BAD_REQUEST, f"unknown parameter {name[:50]!r}", remedy=hint
                )


async def read_parameters(request: Request) -> Parameters:
    """From the query and, for POST, a flat JSON object beside it."""
    values = _from_query(request.scope["query_string"])
    if request.method == "POST":
        try:
            async with asyncio.timeout(BODY_DEADLINE):
                body = await _body(request)
        except TimeoutError:
            raise RequestError(
                ErrorCode.REQUEST_TIMEOUT,
                f"the request's body did not end within {BODY_DEADLINE:g} s",
                remedy="send it whole; text is read before it is spoken",
            ) from None
        values.update(_from_json(body))
    return Parameters(values)


def _from_query(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query.decode(), keep_blank_values=True, errors="strict", max_num_fields=32
        )
    except UnicodeDecodeError as error:
        raise RequestError(
            ErrorCode.BAD_TEXT,
            f"the query is not UTF-8 (byte 0x{error.object[error.start]:02x} of a value)",
            remedy="percent-encode text as UTF-8",
        ) from None
    except ValueError:
        raise RequestError(
            ErrorCode.BAD_REQUEST, "more than 32 parameters", remedy="send fewer"
        ) from None
    return _unique(pairs)


def _from_json(body: bytes) -> dict[str, str]:
    if not body.strip():
        return {}
    try:
        value = json.loads(body, object_pairs_hook=_unique_items, parse_int=_whole)
    except RecursionError:
        value = None
    except ValueError as error:
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            f"the body is not JSON: {str(error)[:100]}",
            remedy='send an object such as {"text": "Hello"}',
        ) from None
    if not isinstance(value, dict):
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            "the body is not a JSON object",
            remedy='send an object such as {"text": "Hello"}',
        )
    return {name: _plain(name, item) for name, item in value.items()}


def _unique_items(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name[:50]!r} is given twice")
        if len(names) > 32:
            raise ValueError("more than 32 parameters")
    return dict(pairs)


def _whole(digits: str) -> int:
    # Beyond some thousands of digits int() speaks of a setting of Python's.
    if len(digits) > _DIGITS:
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            f"the body holds a number of {len(digits)} digits",
            remedy=f"send numbers of at most {_DIGITS} digits",
        )
    return int(digits)


def _unique(pairs: list[tuple[str, str]]) -> dict[str, str]:
    try:
        values = _unique_items(list(pairs))
    except ValueError as error:
        raise RequestError(ErrorCode.BAD_REQUEST, str(error), remedy="give it once") from None
    return {name: str(value) for name, value in values.items()}


def _plain(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _bad(name, json.dumps(value)[:50], "a string or a number")
    return str(value)


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise RequestError(
                    ErrorCode.TOO_LARGE,
                    f"a body of more than {MAX_BODY} bytes",
                    remedy="send the text in several requests",
                )
    except ClientDisconnect:
        raise RequestError(ErrorCode.BAD_REQUEST, "the client left in mid-request") from None
    return bytes(body)


def _bad(name: str, value: str, expected: str) -> RequestError:
    return RequestError(
        ErrorCode.BAD_REQUEST, f"{name} = {value[:50]!r}", remedy=f"give {expected}"
    )
