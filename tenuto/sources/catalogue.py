"""From a request's parameters to a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import FRAMES_PER_SECOND, AudioFormat
from tenuto.sources import kinds
from tenuto.sources.base import Source
from tenuto.sources.clock import ClockSource
from tenuto.sources.converted import converted
from tenuto.sources.counting import CountingSource
from tenuto.sources.espeak import open_speech
from tenuto.sources.file import MediaFolder
from tenuto.sources.formats import Wanted
from tenuto.sources.kinds import KINDS
from tenuto.sources.model import ModelSource
from tenuto.sources.parameters import SourceKind, refuse
from tenuto.sources.stdin import StandardInput
from tenuto.sources.tone import ToneSource

__all__ = ["PARAMETERS", "find_kind", "open_source"]

PARAMETERS: dict[str, frozenset[str]] = {kind.name: kind.names for kind in KINDS}
"""The parameters each kind of source takes; names in none of them are the caller's."""

_IMPLIED = {name: kind for kind in KINDS for name in kind.implied_by}
_SHOWN = 40


def find_kind(request: Mapping[str, str], *, allow_test_sources: bool = False) -> SourceKind:
    """The kind that a request asks for by `source=`, or by `text=`, `file=` or `tone=`.

    Raises `RequestError` where that cannot be told, and for a parameter that only another
    kind takes: it is refused, not ignored.
    """
    kind = _kind(request, allow_test_sources=allow_test_sources)
    foreign = {name for names in PARAMETERS.values() for name in names} - kind.names
    for name in sorted(foreign & request.keys()):
        taken = ", ".join(sorted(kind.names - {"source"})) or "no parameters"
        refuse(f"{name}= means nothing to a {kind.name} source", f"it takes {taken}")
    return kind


async def open_source(
    request: Mapping[str, str],
    *,
    media: MediaFolder | None = None,
    stdin: StandardInput | None = None,
    allow_test_sources: bool = False,
    wait: bool = True,
) -> Source:
    """The source that a request asks for.

    Without `wait` it is only a check: nobody's audio is waited for.
    Raises `RequestError` that names the parameter, its value and what it may be.
    """
    match find_kind(request, allow_test_sources=allow_test_sources).name:
        case "speech":
            return converted(await _open_speech(request), _wanted(request))
        case "file":
            return await _open_file(request, media)
        case "tone":
            return _open_tone(request)
        case "stdin":
            return await _open_stdin(stdin, wait=wait)
        case "model":
            return _open_model(request)
        case "clock":
            return ClockSource(frames=kinds.FRAMES.maybe(request))
        case _:
            return _open_counting(request)


def _kind(request: Mapping[str, str], *, allow_test_sources: bool) -> SourceKind:
    implied = [name for name in _IMPLIED if name in request]
    if "source" in request:
        had = {kind.name: kind for kind in KINDS if allow_test_sources or not kind.for_tests}
        asked = request["source"]
        if asked not in had:
            shown = asked[:_SHOWN]
            refuse(f"source={shown!r} is none that this server has", f"use {', '.join(had)}")
        return had[asked]
    if len(implied) > 1:
        refuse(f"{'= and '.join(implied)}= ask for different sources", "give one of them")
    if not implied:
        refuse("nothing says what to play", "give text=, file= or tone=")
    return _IMPLIED[implied[0]]


async def _open_speech(request: Mapping[str, str]) -> Source:
    return await open_speech(
        kinds.TEXT.needed(request),
        request.get("lang"),
        voice=kinds.VOICE.read(request),
        speed=kinds.SPEED.count(request),
        pitch=kinds.PITCH.count(request),
        offset=kinds.OFFSET.count(request),
    )


def _wanted(request: Mapping[str, str]) -> Wanted:
    """The format that files and speech are converted to."""
    rate = kinds.TO_RATE.maybe(request)
    if rate is not None and rate % FRAMES_PER_SECOND:
        refuse(f"rate={rate} cannot be used", "give a number divisible by 50, such as 16000")
    return Wanted(rate, kinds.TO_CHANNELS.maybe(request))


async def _open_file(request: Mapping[str, str], media: MediaFolder | None) -> Source:
    name, wanted = kinds.FILE_NAME.needed(request), _wanted(request)
    if media is None:
        raise RequestError(
            ErrorCode.UNKNOWN_FILE,
            "this server plays no files",
            remedy="start it with a media folder",
        )
    return replace(await media.open(name, wanted), skip=kinds.SKIP.count(request))


async def _open_stdin(stdin: StandardInput | None, *, wait: bool) -> Source:
    if stdin is None:
        refuse("source=stdin is not served here", "start the server with --stdin live or pausable")
    return await stdin.open(wait=wait)


def _open_tone(request: Mapping[str, str]) -> Source:
    if "tone" in request and "frequency" in request:
        refuse("tone= and frequency= are the same thing", "give one of them")
    rate = kinds.RATE.count(request)
    pitch = kinds.TONE_PITCH if "tone" in request else kinds.FREQUENCY
    return ToneSource(
        frequency=pitch.read(request, high=rate / 2),
        seconds=kinds.SECONDS.read(request),
        rate=rate,
        channels=kinds.CHANNELS.count(request),
        level=kinds.LEVEL.read(request),
        skip=kinds.SKIP.count(request),
    )


def _open_counting(request: Mapping[str, str]) -> Source:
    format = AudioFormat(kinds.RATE.count(request), kinds.CHANNELS.count(request))
    return CountingSource(
        frames=kinds.FRAMES.maybe(request),
        format=format,
        run_size=kinds.RUN.maybe(request) or format.frame_size,
        first_delay=kinds.FIRST_DELAY.read(request),
        delay=kinds.DELAY.read(request),
        fail_after=kinds.FAIL_AFTER.maybe(request),
        block_after=kinds.BLOCK_AFTER.maybe(request),
        skip=kinds.SKIP.count(request),
    )


def _open_model(request: Mapping[str, str]) -> Source:
    return ModelSource(
        seconds=kinds.MODEL_SECONDS.read(request),
        format=AudioFormat(kinds.RATE.count(request), kinds.CHANNELS.count(request)),
        step=kinds.STEP.read(request) / 1000,
        first_token=kinds.FIRST_TOKEN.read(request),
        rtf=kinds.RTF.read(request),
        stall_every=kinds.STALL_EVERY.count(request),
        stall=kinds.STALL.read(request),
        fail_after=kinds.FAIL_AFTER_STEPS.maybe(request),
        jitter=kinds.JITTER.read(request),
        seed=kinds.SEED.count(request),
        skip=kinds.SKIP.count(request),
    )
