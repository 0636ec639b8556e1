"""From records to bytes."""

from __future__ import annotations

from typing import assert_never

from tenuto.media import FRAME_DURATION, Frame
from tenuto.wire.records import (
    MAX_NOTICE_SIZE,
    VERSION,
    Copy,
    End,
    Format,
    Gap,
    Keepalive,
    Mark,
    Notice,
    RecordType,
)
from tenuto.wire.sequence import truncate
from tenuto.wire.varint import encode_varint

__all__ = ["FRAME_MILLISECONDS", "RecordEncoder"]

FRAME_MILLISECONDS = round(FRAME_DURATION * 1000)


class RecordEncoder:
    """Encodes the records of one stream; it holds no state, so any number may share it."""

    def frame(self, frame: Frame) -> bytes:
        """FRAME, with a MARK before it for each text offset that begins in it."""
        body_size = 2 + len(frame.payload)
        head = b"\x02" + encode_varint(body_size) + truncate(frame.sequence).to_bytes(2, "big")
        if not frame.marks:
            return head + frame.payload
        marks = b"".join(self.mark(Mark(frame.sequence, offset)) for offset in frame.marks)
        return marks + head + frame.payload

    def keepalive(self) -> bytes:
        return b"\x00"

    def format(self, record: Format) -> bytes:
        """FORMAT: fixed bytes first, then variable-length integers; it may grow at its end."""
        fixed = bytes(
            (
                VERSION,
                record.format_id,
                record.audio.codec,
                record.audio.channels,
                FRAME_MILLISECONDS,
                record.chunk_frames,
            )
        )
        numbers = (record.audio.rate, record.epoch, record.epoch_base, record.sequence)
        return _record(RecordType.FORMAT, fixed + b"".join(map(encode_varint, numbers)))

    def copy(self, record: Copy) -> bytes:
        head = truncate(record.sequence).to_bytes(2, "big") + bytes((record.format_id,))
        return _record(RecordType.COPY, head + record.payload)

    def gap(self, record: Gap) -> bytes:
        head = truncate(record.sequence).to_bytes(2, "big")
        return _record(RecordType.GAP, head + encode_varint(record.count))

    def mark(self, record: Mark) -> bytes:
        head = truncate(record.sequence).to_bytes(2, "big")
        return _record(RecordType.MARK, head + encode_varint(record.text_offset))

    def notice(self, record: Notice) -> bytes:
        """NOTICE; `ValueError` past 4,096 bytes of UTF-8."""
        body = record.json.encode()
        if len(body) > MAX_NOTICE_SIZE:
            raise ValueError(f"a notice of {len(body)} bytes; {MAX_NOTICE_SIZE} at most")
        return _record(RecordType.NOTICE, body)

    def end(self, record: End) -> bytes:
        return _record(RecordType.END, encode_varint(record.frames) + encode_varint(record.samples))

    def encode(
        self, record: Keepalive | Format | Frame | Copy | Gap | Mark | Notice | End
    ) -> bytes:
        """Any record a server may send."""
        match record:
            case Frame():
                return self.frame(record)
            case Keepalive():
                return self.keepalive()
            case Format():
                return self.format(record)
            case Copy():
                return self.copy(record)
            case Gap():
                return self.gap(record)
            case Mark():
                return self.mark(record)
            case Notice():
                return self.notice(record)
            case End():
                return self.end(record)
            case _:
                assert_never(record)


def _record(type: RecordType, body: bytes) -> bytes:
    return bytes((type,)) + encode_varint(len(body)) + body
