"""WAV files glued together in a stream that cannot go back, or samples without a header."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from enum import Enum, auto
from typing import NoReturn, Protocol

from tenuto.convert import Converter, SampleDecoder
from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.formats import Wanted, check_shape
from tenuto.sources.recognise import recognise
from tenuto.sources.wav import WavData, is_wav, padding, read_header, refuse_file

__all__ = ["MAX_HEAD", "RawStream", "Run", "SampleStream", "WavStream"]

MAX_HEAD = 1024 * 1024
"""Bytes from a header's first to its samples: what is held of it at most."""

Run = tuple[AudioFormat, bytes]
"""Whole samples and what they are."""

_MAGIC = (b"RIFF", b"RF64", b"BW64")
_CHUNK = struct.Struct("<4sI")


class SampleStream(Protocol):
    """Bytes in, whole samples out. `format` is that of the last header, None before it."""

    format: AudioFormat | None

    def push(self, data: bytes) -> Iterator[Run]:
        """Exhaust it before the next call; raises where `data` is no audio."""
        ...

    def finish(self) -> Iterator[Run]:
        """No more will come; raises where that is too early to mean anything."""
        ...


class RawStream:
    """Samples of one format, as they come."""

    def __init__(self, format: AudioFormat) -> None:
        self.format: AudioFormat | None = format
        self._cutter = _Cutter(format)

    def push(self, data: bytes) -> Iterator[Run]:
        yield from self._cutter.push(data)

    def finish(self) -> Iterator[Run]:
        """Nothing: a part of a sample is no sound."""
        return iter(())


class _State(Enum):
    HEAD = auto()
    DATA = auto()
    BETWEEN = auto()


class WavStream:
    """The samples of one WAV file after the other.

    Where the length of the samples is known, what follows is looked at: a chunk is skipped,
    another header begins another file. Where it is not known (pipes), they go to the end. A
    file that is cut short is played as far as it goes.

    Raises `RequestError(UNSUPPORTED_AUDIO)` where the first header cannot be used, and
    `SourceError` where a later one cannot, or where something else follows the samples.
    """

    def __init__(self, name: str) -> None:
        self.format: AudioFormat | None = None
        self._name = name
        self._state = _State.HEAD
        self._head = bytearray()
        self._walked = 0
        self._left: int | None = 0
        self._pad = 0
        self._skip = 0
        self._samples: _Samples | None = None

    def push(self, data: bytes) -> Iterator[Run]:
        while data:
            if self._skip:
                skipped = min(self._skip, len(data))
                self._skip -= skipped
                data = data[skipped:]
            elif self._state is _State.DATA and self._samples is not None:
                most = len(data) if self._left is None else min(self._left, len(data))
                yield from self._samples.push(data[:most])
                data = data[most:]
                if self._ends(most):
                    yield from self._samples.finish()
                    self._between()
            elif self._state is _State.HEAD:
                data = self._read_head(data)
            else:
                data = self._read_chunk(data)

    def finish(self) -> Iterator[Run]:
        if self._state is _State.DATA and self._samples is not None:
            yield from self._samples.finish()
        if self._state is _State.HEAD and self._head:
            self._refuse_early(bytes(self._head))

    def _ends(self, size: int) -> bool:
        """Are these the last bytes of a file's samples?"""
        if self._left is None:
            return False
        self._left -= size
        return not self._left

    def _between(self) -> None:
        self._skip = self._pad
        self._state = _State.BETWEEN
        self._head.clear()

    def _read_head(self, data: bytes) -> bytes:
        """Take the bytes of a header; returns what follows it."""
        before = len(self._head)
        self._head += data
        if len(self._head) < 12:
            return b""
        if not is_wav(bytes(self._head)):
            self._parse(bytes(self._head))
        end = self._find_data()
        if end is None:
            return b""
        self._begin(bytes(self._head[:end]))
        rest = data[end - before :] if end > before else data
        self._head.clear()
        return rest

    def _find_data(self) -> int | None:
        """Where the samples begin; None where that is yet to come."""
        at = max(self._walked, 12)
        while at + _CHUNK.size <= len(self._head):
            tag, size = _CHUNK.unpack_from(self._head, at)
            if tag == b"data":
                return at + _CHUNK.size
            end = at + _CHUNK.size + size
            if end % 2:
                if len(self._head) < end + 5 and end <= MAX_HEAD:
                    return None
                end += padding(bytes(self._head[end : end + 5]))
            self._walked = at = end
        if max(at, len(self._head)) > MAX_HEAD:
            self._fail(f"{self._name} is a WAV file with more than {MAX_HEAD} bytes of header")
        return None

    def _begin(self, head: bytes) -> None:
        found, self.format = self._parse(head)
        self._samples = _Samples(found, self.format)
        self._walked = 0
        self._left = found.size
        self._pad = (found.size or 0) % 2
        self._state = _State.DATA
        if self._left == 0:
            self._between()

    def _parse(self, head: bytes) -> tuple[WavData, AudioFormat]:
        try:
            if not is_wav(head):
                refuse_file(self._name, recognise(head).what)
            data = read_header(io.BytesIO(head), self._name)
            check_shape(data, self._name)
            return data, Wanted().of(data)
        except RequestError as error:
            if self.format is None:
                raise
            raise SourceError(f"after its first file {error.message}") from error

    def _read_chunk(self, data: bytes) -> bytes:
        """What stands between two files: a chunk of the last one, or the next one's header."""
        wanted = _CHUNK.size - len(self._head)
        self._head += data[:wanted]
        if len(self._head) < _CHUNK.size:
            return b""
        tag, size = _CHUNK.unpack(self._head)
        if tag in _MAGIC:
            self._state = _State.HEAD
            return data[wanted:]
        if not (tag.isascii() and tag.decode("ascii").isprintable()):
            self._fail(f"after its samples {self._name} goes on with what is no WAV data")
        self._head.clear()
        self._skip = size + size % 2
        return data[wanted:]

    def _refuse_early(self, head: bytes) -> None:
        if head[:4] in _MAGIC:
            self._fail(f"{self._name} is a WAV header that ends after {len(head)} bytes")
        self._parse(head)

    def _fail(self, message: str) -> NoReturn:
        if self.format is not None:
            raise SourceError(message)
        raise RequestError(
            ErrorCode.UNSUPPORTED_AUDIO,
            message,
            remedy="write a WAV file, or raw samples and --stdin-format RATE:CHANNELS",
        )


class _Samples:
    """Stored samples in, 16-bit ones of `format` out."""

    def __init__(self, data: WavData, format: AudioFormat) -> None:
        self._decoder = SampleDecoder(data.encoding)
        self._converter = Converter(data, format)
        self._cutter = _Cutter(format)

    def push(self, data: bytes) -> Iterator[Run]:
        yield from self._cutter.push(self._converter.push(self._decoder.push(data)))

    def finish(self) -> Iterator[Run]:
        self._decoder.finish()
        yield from self._cutter.push(self._converter.finish())


class _Cutter:
    """Runs of whole samples; less than one is carried to the next."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._rest = b""

    def push(self, data: bytes) -> Iterator[Run]:
        data = self._rest + data
        whole = len(data) - len(data) % self._format.bytes_per_sample
        self._rest = data[whole:]
        if whole:
            yield self._format, data[:whole]
