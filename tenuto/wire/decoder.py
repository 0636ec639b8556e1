"""From bytes in any cut to records, with bounded memory and typed errors."""

from __future__ import annotations

from collections import deque

from tenuto.errors import RemoteProtocolError, RequestError
from tenuto.media import AudioFormat, Codec, Frame
from tenuto.wire.encoder import FRAME_MILLISECONDS
from tenuto.wire.records import (
    MAX_BODY_SIZE,
    MAX_GAP,
    MAX_MARKS,
    MAX_NOTICE_SIZE,
    MAX_SKIPPED_SIZE,
    VERSION,
    Copy,
    End,
    Format,
    Gap,
    Keepalive,
    Mark,
    Notice,
    Record,
    RecordType,
    Unknown,
)
from tenuto.wire.sequence import extend
from tenuto.wire.varint import decode_varint

__all__ = ["RecordDecoder"]

_KNOWN = frozenset(RecordType)
_FIXED = 6


class RecordDecoder:
    """Decodes one ordered stream.

    Holds at most one incomplete record (16 KiB). After a `RemoteProtocolError` the stream
    is beyond repair and every later call raises the same.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip = 0
        self._format: Format | None = None
        self._reference = 0
        self._marks: deque[Mark] = deque(maxlen=MAX_MARKS)
        self._failure: RemoteProtocolError | None = None
        self.ended = False
        """An END has come: the stream is complete."""

    @property
    def buffered(self) -> int:
        """Bytes of an incomplete record now held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Record]:
        """The records that `data` completes, in order; MARKs come before their FRAME.

        A frame has the last MAX_MARKS offsets that were sent for it since the frame before.
        """
        if self._failure is not None:
            # Anew: raising it again would grow its traceback with every call.
            raise self._failure.with_traceback(None)
        try:
            return self._feed(data)
        except RemoteProtocolError as failure:
            self._failure = failure
            self._buffer.clear()
            raise

    def _feed(self, data: bytes) -> list[Record]:
        records: list[Record] = []
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        buffer = self._buffer
        buffer += data
        offset = 0
        while offset < len(buffer):
            if self.ended:
                raise RemoteProtocolError("a record came after END")
            kind = buffer[offset]
            if kind == RecordType.KEEPALIVE:
                records.append(Keepalive())
                offset += 1
                continue
            length = decode_varint(buffer, offset + 1)
            if length is None:
                break
            size, start = length
            _check_size(kind, size)
            if kind not in _KNOWN:
                records.append(Unknown(kind, size))
                available = min(size, len(buffer) - start)
                self._skip = size - available
                offset = start + available
                continue
            if len(buffer) - start < size:
                break
            offset = start + size
            records.append(self._decode(kind, bytes(buffer[start:offset])))
        del buffer[:offset]
        return records

    def _decode(self, kind: int, body: bytes) -> Record:
        if kind == RecordType.FRAME:
            return self._frame(body)
        if kind == RecordType.FORMAT:
            return self._adopt(_decode_format(body))
        if kind == RecordType.NOTICE:
            return Notice(_text(body))
        if kind == RecordType.END:
            return self._end(body)
        sequence = self._sequence(body, RecordType(kind).name)
        if kind == RecordType.MARK:
            (text_offset,) = _numbers(body, 2, 1, "MARK")
            mark = Mark(sequence, text_offset)
            self._marks.append(mark)
            return mark
        if kind == RecordType.GAP:
            return self._gap(sequence, body)
        if len(body) < 3:
            raise RemoteProtocolError("a COPY without a format id")
        return Copy(sequence, body[2], body[3:])

    def _frame(self, body: bytes) -> Frame:
        sequence = self._sequence(body, "FRAME")
        payload = body[2:]
        assert self._format is not None  # _sequence refuses a record before FORMAT
        audio = self._format.audio
        if not payload or len(payload) > audio.frame_size or len(payload) % audio.bytes_per_sample:
            raise RemoteProtocolError(
                f"frame {sequence} has {len(payload)} bytes; whole samples of "
                f"{audio.bytes_per_sample} bytes up to {audio.frame_size} were announced"
            )
        self._reference = sequence
        marks = tuple(mark.text_offset for mark in self._marks if mark.sequence == sequence)
        self._marks.clear()
        return Frame(sequence, payload, len(payload) // audio.bytes_per_sample, marks)

    def _gap(self, sequence: int, body: bytes) -> Gap:
        (count,) = _numbers(body, 2, 1, "GAP")
        if not 0 < count <= MAX_GAP:
            raise RemoteProtocolError(f"a GAP of {count} frames; 1 to {MAX_GAP} are possible")
        self._reference = sequence + count - 1
        return Gap(sequence, count)

    def _end(self, body: bytes) -> End:
        if self._format is None:
            raise RemoteProtocolError("an END came before FORMAT")
        frames, samples = _numbers(body, 0, 2, "END")
        self.ended = True
        return End(frames, samples)

    def _adopt(self, format: Format) -> Format:
        self._format = format
        self._reference = format.sequence
        return format

    def _sequence(self, body: bytes, name: str) -> int:
        if self._format is None:
            raise RemoteProtocolError(f"a {name} came before FORMAT")
        if len(body) < 2:
            raise RemoteProtocolError(f"a {name} without a sequence")
        return extend(int.from_bytes(body[:2], "big"), self._reference)


def _check_size(kind: int, size: int) -> None:
    bound = MAX_BODY_SIZE if kind in _KNOWN else MAX_SKIPPED_SIZE
    if kind == RecordType.NOTICE:
        bound = MAX_NOTICE_SIZE
    if size > bound:
        raise RemoteProtocolError(
            f"a record of type {kind} announces {size} bytes; {bound} at most"
        )


def _decode_format(body: bytes) -> Format:
    if len(body) < _FIXED:
        raise RemoteProtocolError(f"a FORMAT of {len(body)} bytes; {_FIXED + 4} at least")
    version, format_id, codec, channels, milliseconds, chunk_frames = body[:_FIXED]
    if version != VERSION:
        raise RemoteProtocolError(f"wire format version {version}; this side reads {VERSION}")
    if codec not in frozenset(Codec):
        raise RemoteProtocolError(f"codec {codec} is unknown to this side")
    if milliseconds != FRAME_MILLISECONDS:
        raise RemoteProtocolError(f"frames of {milliseconds} ms; {FRAME_MILLISECONDS} expected")
    if chunk_frames == 0:
        raise RemoteProtocolError("chunks of 0 frames")
    rate, epoch, epoch_base, sequence = _numbers(body, _FIXED, 4, "FORMAT")
    if sequence < epoch_base:
        raise RemoteProtocolError(f"sequence {sequence} lies before its epoch's base {epoch_base}")
    try:
        audio = AudioFormat(rate, channels, Codec(codec))
    except RequestError as error:
        raise RemoteProtocolError(f"an impossible FORMAT: {error.message}") from error
    return Format(audio, sequence, epoch, epoch_base, format_id, chunk_frames)


def _numbers(body: bytes, offset: int, count: int, name: str) -> list[int]:
    """`count` integers; bytes behind them belong to a later version and are left alone."""
    numbers = []
    for _ in range(count):
        decoded = decode_varint(body, offset)
        if decoded is None:
            raise RemoteProtocolError(f"{name} ends in the middle of a number")
        value, offset = decoded
        numbers.append(value)
    return numbers


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError("a NOTICE that is not UTF-8") from error
