"""WAV files glued together in a stream that cannot go back, or samples without a header."""

from __future__ import annotations

import io
import struct
from collections.abc import Generator, Iterator
from enum import Enum, auto
from typing import NoReturn, Protocol

from tenuto.convert import Converter, SampleDecoder
from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.formats import Wanted, check_shape
from tenuto.sources.recognise import recognise
from tenuto.sources.wav import (
    HEADERS,
    KNOWN_CHUNKS,
    WavData,
    is_wav,
    padding,
    read_header,
    refuse_file,
)

__all__ = ["MAX_HEAD", "MAX_TRAILER", "RawStream", "Run", "SampleStream", "WavStream"]

MAX_HEAD = 1024 * 1024
"""Bytes from a header's first to its samples: what is held of it at most."""

MAX_TRAILER = 64 * 1024 * 1024
"""Bytes of a chunk behind the samples; four letters, taken for a size, are far more."""

Run = tuple[AudioFormat, bytes]
"""Whole samples and what they are."""

_CHUNK = struct.Struct("<4sI")
_RIFF_SIZE = 12
# Chunks that may stand behind the samples: these three belong before them.
_TRAILERS = KNOWN_CHUNKS - {b"fmt ", b"data", b"ds64"}
# How far from 2 and from 4 GiB a length is still one that a writer into a pipe made up: sox
# and arecord take off a header, a page, or what is no whole block.
_NEAR = 64 * 1024
# How much of the audio one conversion gives: what is in hand beside what is held.
_PART_SIZE = 16 * 1024
_REMEDY = "write WAV files and nothing else, or raw samples and --stdin-format RATE:CHANNELS"


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
        self._blocks = _Blocks(format.bytes_per_sample)

    def push(self, data: bytes) -> Iterator[Run]:
        assert self.format is not None
        if whole := self._blocks.push(data):
            yield self.format, whole

    def finish(self) -> Iterator[Run]:
        """Nothing: a part of a sample is no sound."""
        return iter(())


class _State(Enum):
    HEAD = auto()
    BEGINNING = auto()
    """Where nothing says how many samples there are, there may be none."""
    DATA = auto()
    BETWEEN = auto()


class WavStream:
    """The samples of one WAV file after the other.

    Where the length of the samples is known, what follows is looked at: a chunk that is known
    is skipped, another header begins another file. Where it is not known (pipes), they go to
    the end, save that a header in place of the first sample begins another file. A file that
    is cut short is played as far as it goes. Files of one rate and channel count are
    converted as if they were one.

    Raises `RequestError(UNSUPPORTED_AUDIO)` where the first header cannot be used, and
    `SourceError` where a later one cannot, or where something else follows the samples.
    """

    def __init__(self, name: str) -> None:
        self.format: AudioFormat | None = None
        self.left: int | None = 0
        """Bytes of samples that this file is to bring; None: all that come."""
        self._name = name
        self._state = _State.HEAD
        self._head = bytearray()
        self._walked = 0
        self._odd = False
        self._skip = 0
        self._samples: _Samples | None = None

    def push(self, data: bytes) -> Iterator[Run]:
        try:
            while data:
                data = yield from self._take(data)
        except SourceError:
            yield from self._flush()
            raise

    def finish(self) -> Iterator[Run]:
        if self._state is _State.BEGINNING:
            yield from self._play(bytes(self._head))
        yield from self._flush()
        if self._state is _State.HEAD and self._head:
            self._refuse_early(bytes(self._head))
        if self._state is _State.BETWEEN and not self._skip:
            self._check_rest(bytes(self._head))

    def _take(self, data: bytes) -> Generator[Run, None, bytes]:
        """Look at the first of it; returns what is left to look at."""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            return data[skipped:]
        match self._state:
            case _State.HEAD:
                return (yield from self._read_head(data))
            case _State.BEGINNING:
                return self._read_beginning(data)
            case _State.BETWEEN:
                return self._read_chunk(data)
            case _State.DATA:
                most = len(data) if self.left is None else min(self.left, len(data))
                yield from self._play(data[:most])
                if self.left is not None:
                    self.left -= most
                    if not self.left:
                        self._between()
                return data[most:]

    def _play(self, data: bytes) -> Iterator[Run]:
        assert self._samples is not None
        yield from self._samples.push(data)

    def _flush(self) -> Iterator[Run]:
        """What the converter still holds; it is done with."""
        samples, self._samples = self._samples, None
        if samples is not None:
            yield from samples.finish()

    # The header

    def _read_head(self, data: bytes) -> Generator[Run, None, bytes]:
        before = len(self._head)
        self._head += data
        if len(self._head) < _RIFF_SIZE:
            return b""
        if not is_wav(bytes(self._head[:_RIFF_SIZE])):
            self._parse(bytes(self._head))
        end = self._find_data()
        if end is None:
            return b""
        yield from self._begin(bytes(self._head[:end]))
        rest = data[end - before :] if end > before else data
        self._head.clear()
        return rest

    def _find_data(self) -> int | None:
        """Where the samples begin; None where that is yet to come."""
        at = max(self._walked, _RIFF_SIZE)
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

    def _begin(self, head: bytes) -> Iterator[Run]:
        data, format = self._parse(head)
        if self._samples is not None and not self._samples.fits(data):
            yield from self._flush()
        if self._samples is None:
            try:
                self._samples = _Samples(data, format)
            except RequestError as error:
                raise self._owned(error) from error
        self._samples.begin(data)
        # Now, and not sooner: what was given until here is of the format before.
        self.format = format
        self._walked = 0
        self.left = _length(data, head)
        self._odd = bool(self.left and self.left % 2)
        self._state = _State.BEGINNING if self.left is None else _State.DATA
        if self.left == 0:
            self._between()

    def _parse(self, head: bytes) -> tuple[WavData, AudioFormat]:
        try:
            if not is_wav(head):
                refuse_file(self._name, recognise(head).what)
            data = read_header(io.BytesIO(head), self._name)
            check_shape(data, self._name)
            return data, Wanted().of(data)
        except RequestError as error:
            raise self._owned(error) from error

    def _owned(self, error: RequestError) -> RequestError | SourceError:
        """Of the first header it is the asker's; later the session's."""
        if self.format is None:
            return error
        return SourceError(f"after its first file {error.message}", remedy=error.remedy or _REMEDY)

    def _refuse_early(self, head: bytes) -> None:
        if head[:4] in HEADERS:
            self._fail(f"{self._name} is a WAV header that ends after {len(head)} bytes")
        self._parse(head)

    def _read_beginning(self, data: bytes) -> bytes:
        """The first bytes of samples of unknown length, or the header of the next file."""
        self._head += data
        if len(self._head) < _RIFF_SIZE:
            return b""
        data = bytes(self._head)
        self._head.clear()
        self._state = _State.HEAD if is_wav(data) else _State.DATA
        return data

    # What stands between two files: chunks of the last one, or the next one's header

    def _between(self) -> None:
        self._state = _State.BETWEEN
        self._head.clear()

    def _read_chunk(self, data: bytes) -> bytes:
        self._head += data
        # Behind an odd size there is a byte more, or not.
        if len(self._head) < _CHUNK.size + self._odd:
            return b""
        data = bytes(self._head)
        self._head.clear()
        if self._odd:
            data = data[padding(data[:5]) :]
            self._odd = False
        tag, size = _CHUNK.unpack_from(data)
        if tag in HEADERS:
            self._state = _State.HEAD
            return data
        if tag not in _TRAILERS or size > MAX_TRAILER:
            self._refuse_rest(data)
        self._skip, self._odd = size, bool(size % 2)
        return data[_CHUNK.size :]

    def _check_rest(self, rest: bytes) -> None:
        """Too little for a chunk is its beginning, or nothing that belongs here."""
        starts = [rest]
        if self._odd:
            starts = [rest[padding(rest) :]] if len(rest) > 3 else [rest[1:], rest]
        if b"" in starts:
            return
        if any(_begins(start, HEADERS) for start in starts):
            self._fail(f"{self._name} is a WAV header that ends after {len(rest)} bytes")
        if not any(_begins(start, _TRAILERS) for start in starts):
            self._refuse_rest(starts[0])

    def _refuse_rest(self, rest: bytes) -> NoReturn:
        # The same is said however it was cut.
        rest = rest[: _CHUNK.size]
        what = "an ID3v1 tag" if rest.startswith(b"TAG") else recognise(rest).what
        if rest[:4] in KNOWN_CHUNKS:
            what = "a chunk that cannot stand there"
        self._fail(
            f"after its samples {self._name} goes on with {what} ({rest!r}), which is no WAV data"
        )

    def _fail(self, message: str) -> NoReturn:
        if self.format is not None:
            raise SourceError(message, remedy=_REMEDY)
        raise RequestError(ErrorCode.UNSUPPORTED_AUDIO, message, remedy=_REMEDY)


def _length(data: WavData, head: bytes) -> int | None:
    """How many bytes of samples follow, None where the writer could not know."""
    riff, stored = (struct.unpack_from("<I", head, at)[0] for at in (4, len(head) - 4))
    if (data.size == stored and _is_made_up(stored)) or (data.size == 0 and _is_made_up(riff)):
        return None
    return data.size


def _is_made_up(size: int) -> bool:
    return abs(size - 2**31) <= _NEAR or size >= 2**32 - _NEAR


def _begins(start: bytes, tags: frozenset[bytes]) -> bool:
    """Whether it is one of these, or may become one."""
    return any(tag.startswith(start[:4]) for tag in tags)


class _Samples:
    """Stored samples of files of one shape in, 16-bit ones of `format` out.

    The files' encodings may differ. The converter goes on from one to the next: ended and
    begun anew, its filter would make a click of every seam.
    """

    def __init__(self, data: WavData, format: AudioFormat) -> None:
        self._shape = data.rate, data.channels
        self._format = format
        self._converter = Converter(data, format)
        most = _PART_SIZE // format.bytes_per_sample * data.rate // format.rate
        self._most = max(1, most)
        self.begin(data)

    def fits(self, data: WavData) -> bool:
        return self._shape == (data.rate, data.channels)

    def begin(self, data: WavData) -> None:
        """Another file; a part of a sample at the end of the last one is dropped."""
        self._blocks = _Blocks(data.sample_size)
        self._decoder = SampleDecoder(data.encoding)
        self._most_stored = self._most * data.sample_size

    def push(self, data: bytes) -> Iterator[Run]:
        whole = self._blocks.push(data)
        for first in range(0, len(whole), self._most_stored):
            part = self._decoder.push(whole[first : first + self._most_stored])
            if made := self._converter.push(part):
                yield self._format, made

    def finish(self) -> Iterator[Run]:
        if made := self._converter.finish():
            yield self._format, made


class _Blocks:
    """Whole blocks of `size` bytes; less than one is carried to the next."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rest = b""

    def push(self, data: bytes) -> bytes:
        data = self._rest + data
        whole = len(data) - len(data) % self._size
        self._rest = data[whole:]
        return data[:whole]
