"""How a stream's bytes look: records, or plain audio for plain players."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from tenuto.convert import Converter
from tenuto.errors import RequestError, TenutoError
from tenuto.media import AudioFormat, Frame
from tenuto.session import Cursor, Session
from tenuto.web.chunking import fitting
from tenuto.wire import MEDIA_TYPE, VERSION, End, Format, Gap, Notice, RecordEncoder

__all__ = ["L16", "CannotGoOn", "Encoding", "Records", "Wav", "wav_header"]

_UNKNOWN_SIZE = 0xFFFFFFFF
"""A WAV size of a stream whose end is not known, as ffmpeg and sox write it to pipes."""


_MOST_TEXT = 1200
"""Bytes of one text in a NOTICE, escapes included."""


class CannotGoOn(Exception):  # noqa: N818  # an ending, not a mistake
    """`before` is what could still be encoded, `reason` why nothing follows it."""

    def __init__(self, before: bytes, reason: RequestError) -> None:
        super().__init__(str(reason))
        self.before = before
        self.reason = reason


class Encoding(Protocol):
    """The bytes of one response. `begin` comes first and says how frames will be grouped."""

    @property
    def media_type(self) -> str: ...

    @property
    def shows_truncation(self) -> bool:
        """Can a reader tell a cut stream from a whole one by its bytes alone?"""
        ...

    def begin(self, chunk_frames: int) -> bytes: ...

    def flushed(self) -> bytes:
        """A new epoch has begun, and the frames that follow belong to it."""
        ...

    def frames(self, frames: Sequence[Frame]) -> bytes:
        """Raises `CannotGoOn` where this listener cannot be given some of them."""
        ...

    def keepalive(self) -> bytes:
        """A sign of life; empty where any byte would be taken for audio."""
        ...

    def word(self, facts: Mapping[str, str | float]) -> bytes:
        """A NOTICE that ends nothing, of short ASCII; empty where there are none."""
        ...

    def end(self) -> bytes: ...

    def notice(self, error: TenutoError) -> bytes: ...


class Records:
    """`application/vnd.tenuto.records`: all there is to know, in order."""

    media_type = f"{MEDIA_TYPE}; v={VERSION}"
    shows_truncation = True

    def __init__(self, session: Session, cursor: Cursor) -> None:
        self._session = session
        self._cursor = cursor
        self._encoder = RecordEncoder()
        self._chunk_frames = 1
        self._next = cursor.next
        self._span = session.format_at(cursor.next)

    def begin(self, chunk_frames: int) -> bytes:
        self._chunk_frames = chunk_frames
        return self.flushed()

    def flushed(self) -> bytes:
        # Older frames will not come, and nobody is to wait for them or to miss them.
        self._next = max(self._next, self._session.base)
        self._span = self._session.format_at(self._next)
        return self._format()

    def frames(self, frames: Sequence[Frame]) -> bytes:
        parts: list[bytes] = []
        for frame in frames:
            if frame.sequence > self._next:
                # A live listener left out what it was too slow for.
                missing = frame.sequence - self._next
                parts.append(self._encoder.gap(Gap(self._next, missing)))
                self._next = frame.sequence
            if self._session.newest_format.id != self._span.id:
                span = self._session.format_at(frame.sequence)
                if span.id != self._span.id:
                    self._span = span
                    parts.append(self._format())
            parts.append(self._encoder.frame(frame))
            self._next += 1
        return b"".join(parts)

    def _format(self) -> bytes:
        """What the frames from the next one on are."""
        return self._encoder.format(
            Format(
                self._span.audio,
                self._next,
                epoch=self._session.epoch,
                epoch_base=self._session.base,
                format_id=self._span.id & 0xFF,
                chunk_frames=min(self._chunk_frames, fitting(self._span.audio.frame_size)),
            )
        )

    def keepalive(self) -> bytes:
        return self._encoder.keepalive()

    def word(self, facts: Mapping[str, str | float]) -> bytes:
        return self._encoder.notice(Notice(json.dumps(facts)))

    def end(self) -> bytes:
        session = self._session
        return self._encoder.end(End(session.end - session.base, session.samples))

    def notice(self, error: TenutoError) -> bytes:
        """What went wrong and from which frame, and which place in the text, to go on."""
        going_on: dict[str, int | str] = {
            "session": self._session.id,
            "epoch": self._session.epoch,
            "from": self._cursor.next,
        }
        text_offset = self._session.text_offset(self._cursor.next)
        if text_offset is not None:
            going_on["text_offset"] = text_offset
        facts = {
            "code": error.code.value,
            "message": _clipped(error.message),
            "remedy": _clipped(error.remedy),
            "resume": going_on,
            **error.detail,
        }
        # ASCII, so that whatever a message quotes can be encoded.
        return self._encoder.notice(Notice(json.dumps(facts)))


class Wav:
    """`audio/wav` with a header of unknown length, then samples."""

    media_type = "audio/wav"
    shows_truncation = False

    def __init__(self, session: Session, cursor: Cursor) -> None:
        self._samples = _OneFormat(session, cursor)

    def begin(self, chunk_frames: int) -> bytes:
        return wav_header(self._samples.audio)

    def flushed(self) -> bytes:
        return b""

    def frames(self, frames: Sequence[Frame]) -> bytes:
        return self._samples.of(frames)

    def keepalive(self) -> bytes:
        return b""

    def word(self, facts: Mapping[str, str | float]) -> bytes:
        return b""

    def end(self) -> bytes:
        return self._samples.rest()

    def notice(self, error: TenutoError) -> bytes:
        return self._samples.rest()


class L16:
    """`audio/L16`: samples in network byte order (RFC 3551 section 4.5.11)."""

    shows_truncation = False

    def __init__(self, session: Session, cursor: Cursor) -> None:
        self._samples = _OneFormat(session, cursor)
        audio = self._samples.audio
        self.media_type = f"audio/L16;rate={audio.rate};channels={audio.channels}"

    def begin(self, chunk_frames: int) -> bytes:
        return b""

    def flushed(self) -> bytes:
        return b""

    def frames(self, frames: Sequence[Frame]) -> bytes:
        try:
            return _swapped(self._samples.of(frames))
        except CannotGoOn as end:
            raise CannotGoOn(_swapped(end.before), end.reason) from end

    def keepalive(self) -> bytes:
        return b""

    def word(self, facts: Mapping[str, str | float]) -> bytes:
        return b""

    def end(self) -> bytes:
        return _swapped(self._samples.rest())

    def notice(self, error: TenutoError) -> bytes:
        return _swapped(self._samples.rest())


class _OneFormat:
    """Samples for players that are told a format once: later ones are converted to it."""

    def __init__(self, session: Session, cursor: Cursor) -> None:
        self._session = session
        self._span = session.format_at(cursor.next)
        self.audio = self._span.audio
        self._converter: Converter | None = None

    def of(self, frames: Sequence[Frame]) -> bytes:
        """Raises `CannotGoOn` where a new format cannot be converted here."""
        if self._session.newest_format.id == self._span.id and self._converter is None:
            return b"".join(frame.payload for frame in frames)
        parts: list[bytes] = []
        for frame in frames:
            span = self._session.format_at(frame.sequence)
            if span.id != self._span.id:
                parts.append(self.rest())
                try:
                    self._converter = Converter(span.audio, self.audio)
                except RequestError as reason:
                    raise CannotGoOn(b"".join(parts), reason) from reason
                self._span = span
            converter = self._converter
            parts.append(frame.payload if converter is None else converter.push(frame.payload))
        return b"".join(parts)

    def rest(self) -> bytes:
        """What a converter still holds; it takes no more."""
        converter, self._converter = self._converter, None
        return b"" if converter is None else converter.finish()


def _swapped(samples: bytes) -> bytes:
    return np.frombuffer(samples, dtype="<i2").astype(">i2").tobytes()


def _clipped(text: str) -> str:
    """As much of a text as leaves room in a NOTICE for the rest."""
    while len(json.dumps(text)) > _MOST_TEXT:
        text = text[: len(text) // 2]
    return text


def wav_header(audio: AudioFormat, data_size: int = _UNKNOWN_SIZE) -> bytes:
    """The 44 bytes before the samples of a PCM WAV file."""
    riff_size = _UNKNOWN_SIZE if data_size == _UNKNOWN_SIZE else data_size + 36
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_size,
        b"WAVE",
        b"fmt ",
        16,
        1,
        audio.channels,
        audio.rate,
        audio.bytes_per_second,
        audio.bytes_per_sample,
        16,
        b"data",
        data_size,
    )
