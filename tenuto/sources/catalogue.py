"""From a request's parameters to a source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE, Source
from tenuto.sources.converted import converted
from tenuto.sources.counting import CountingSource
from tenuto.sources.espeak import DEFAULT_LANGUAGE, open_speech
from tenuto.sources.file import MediaFolder
from tenuto.sources.formats import Wanted, read_wanted
from tenuto.sources.tone import MAX_CHANNELS, MAX_RATE, MAX_SECONDS, MIN_RATE, ToneSource

__all__ = ["PARAMETERS", "open_source"]

PARAMETERS: dict[str, frozenset[str]] = {
    "speech": frozenset({"source", "text", "lang", "rate", "channels"}),
    "file": frozenset({"source", "file", "rate", "channels"}),
    "tone": frozenset({"source", "tone", "frequency", "seconds", "rate", "channels", "level"}),
    "counting": frozenset(
        {"source", "frames", "run", "first_delay", "delay", "fail_after", "block_after"}
        | {"rate", "channels"}
    ),
}
"""The parameters each kind of source takes; names in none of them are the caller's."""

_IMPLIED = {"text": "speech", "file": "file", "tone": "tone"}
_MAX_FRAMES = 10_000_000
_MAX_DELAY = 600.0
_SHOWN = 40
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


async def open_source(
    request: Mapping[str, str],
    *,
    media: MediaFolder | None = None,
    allow_test_sources: bool = False,
) -> Source:
    """The source that a request asks for by `source=`, or by `text=`, `file=` or `tone=`.

    Raises `RequestError` that names the parameter, its value and what it may be; a
    parameter that only another kind of source takes is refused, not ignored.
    """
    kinds = tuple(kind for kind in PARAMETERS if kind != "counting" or allow_test_sources)
    kind = _kind(request, kinds)
    foreign = {name for names in PARAMETERS.values() for name in names} - PARAMETERS[kind]
    for name in sorted(foreign & request.keys()):
        taken = ", ".join(sorted(PARAMETERS[kind] - {"source"}))
        _refuse(f"{name}= means nothing to a {kind} source", f"it takes {taken}")
    match kind:
        case "speech":
            language = request.get("lang", DEFAULT_LANGUAGE)
            wanted = read_wanted(request)
            return converted(await open_speech(_needed(request, "text"), language), wanted)
        case "file":
            return await _open_file(_needed(request, "file"), media, read_wanted(request))
        case "tone":
            return _open_tone(request)
        case _:
            return _open_counting(request)


def _kind(request: Mapping[str, str], kinds: tuple[str, ...]) -> str:
    implied = [name for name in _IMPLIED if name in request]
    if "source" in request:
        if request["source"] not in kinds:
            shown = request["source"][:_SHOWN]
            _refuse(f"source={shown!r} is none that this server has", f"use {', '.join(kinds)}")
        return request["source"]
    if len(implied) > 1:
        _refuse(f"{'= and '.join(implied)}= ask for different sources", "give one of them")
    if not implied:
        _refuse("nothing says what to play", "give text=, file= or tone=")
    return _IMPLIED[implied[0]]


async def _open_file(name: str, media: MediaFolder | None, wanted: Wanted) -> Source:
    if media is None:
        raise RequestError(
            ErrorCode.UNKNOWN_FILE,
            "this server plays no files",
            remedy="start it with a media folder",
        )
    return await media.open(name, wanted)


def _open_tone(request: Mapping[str, str]) -> Source:
    if "tone" in request and "frequency" in request:
        _refuse("tone= and frequency= are the same thing", "give one of them")
    rate = _whole(request, "rate", 16000, MIN_RATE, MAX_RATE)
    pitch = "tone" if "tone" in request else "frequency"
    return ToneSource(
        frequency=_real(request, pitch, 440.0, 1, rate / 2),
        seconds=_real(request, "seconds", 1.0, 0, MAX_SECONDS),
        rate=rate,
        channels=_whole(request, "channels", 1, 1, MAX_CHANNELS),
        level=_real(request, "level", 0.5, 0, 1),
    )


def _open_counting(request: Mapping[str, str]) -> Source:
    rate = _whole(request, "rate", 16000, MIN_RATE, MAX_RATE)
    format = AudioFormat(rate, _whole(request, "channels", 1, 1, MAX_CHANNELS))
    return CountingSource(
        frames=_frames(request, "frames"),
        format=format,
        run_size=_whole(request, "run", format.frame_size, 1, MAX_RUN_SIZE),
        first_delay=_real(request, "first_delay", 0.0, 0, _MAX_DELAY),
        delay=_real(request, "delay", 0.0, 0, _MAX_DELAY),
        fail_after=_frames(request, "fail_after"),
        block_after=_frames(request, "block_after"),
    )


def _needed(request: Mapping[str, str], name: str) -> str:
    if name not in request:
        _refuse(f"{name}= is missing", f"a source={request.get('source')} needs it")
    return request[name]


def _frames(request: Mapping[str, str], name: str) -> int | None:
    return _whole(request, name, 0, 0, _MAX_FRAMES) if name in request else None


def _whole(request: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    value = _real(request, name, default, low, high)
    if value != int(value):
        _refuse(f"{name}={request[name]} is no whole number", f"give {low} to {high}")
    return int(value)


def _real(request: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = request.get(name)
    if text is None:
        return default
    # float() would also take "nan", "1e999", "1_0" and digits of other scripts.
    if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
        _refuse(f"{name}={text[:_SHOWN]!r} cannot be used", f"give a number {low:g} to {high:g}")
    return float(text)


def _refuse(message: str, remedy: str) -> NoReturn:
    raise RequestError(ErrorCode.BAD_REQUEST, message, remedy=remedy)
