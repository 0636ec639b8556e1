"""The HTTP/3 half of what touches aioquic's private attributes (1.7.2, pinned exactly)."""

from __future__ import annotations

import pylsqpack
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import ErrorCode as H3Error
from aioquic.h3.connection import FrameType, H3Connection, H3Stream, encode_frame
from aioquic.h3.events import H3Event
from aioquic.quic.events import QuicEvent, StreamDataReceived

from tenuto.quic.connection import Connection

__all__ = ["MAX_FIELD_SECTION_SIZE", "Http3"]

MAX_FIELD_SECTION_SIZE = 64 * 1024
"""Bytes of headers per message, encoded and decoded (RFC 9114 section 4.2.2)."""

_SETTINGS_MAX_FIELD_SECTION_SIZE = 0x6


class Http3(H3Connection):
    """An `H3Connection` that holds at most 64 KiB of any message's headers.

    QPACK's dynamic table is off both ways: under loss it would hold headers back. Data for
    a stream that can no longer be written is refused instead of raising out of a burst.
    """

    def __init__(self, quic: Connection) -> None:
        self._connection = quic
        self.going_away = False
        """The peer has sent GOAWAY: it takes no further requests on this connection."""
        self._refused_from: int | None = None
        self._newest_request = -4
        super().__init__(quic)

    def write(self, stream_id: int, data: bytes, *, end_stream: bool = False) -> bool:
        """Send body data; False where the stream takes no more."""
        if stream_id not in self._stream or not self._connection.writable(stream_id):
            return False
        self.send_data(stream_id, data, end_stream)
        return True

    def respond(
        self, stream_id: int, headers: list[tuple[bytes, bytes]], *, end_stream: bool = False
    ) -> bool:
        """Send headers; False where the stream takes no more."""
        if not self._connection.writable(stream_id):
            return False
        self.send_headers(stream_id, headers, end_stream)
        return True

    def abort(self, stream_id: int, error_code: int) -> None:
        """RESET_STREAM our half and let go of what we know about it."""
        self._connection.reset_stream(stream_id, error_code)
        stream = self._stream.get(stream_id)
        if stream is not None:
            stream.sending_ended = True
            if stream.is_ended():
                del self._stream[stream_id]

    def goaway(self) -> None:
        """GOAWAY: requests that come from now on are to be sent elsewhere (RFC 9114 section 5.2).

        Idempotent. What was asked for before is still answered.
        """
        if self._refused_from is not None or self._local_control_stream_id is None:
            return
        self._refused_from = self._newest_request + 4
        frame = encode_frame(FrameType.GOAWAY, encode_uint_var(self._refused_from))
        self._connection.send_stream_data(self._local_control_stream_id, frame)

    def refuses(self, stream_id: int) -> bool:
        """Is this a request that our GOAWAY has turned away?

        It is reset with H3_REQUEST_REJECTED then: nothing of it was carried out.
        """
        if self._refused_from is None or stream_id < self._refused_from:
            self._newest_request = max(self._newest_request, stream_id)
            return False
        self.abort(stream_id, H3Error.H3_REQUEST_REJECTED)
        self._connection.refuse_rest(stream_id, H3Error.H3_REQUEST_REJECTED)
        return True

    @property
    def open_streams(self) -> int:
        """HTTP/3 streams of either kind that are still known here."""
        return len(self._stream)

    def handle_event(self, event: QuicEvent) -> list[H3Event]:
        events = super().handle_event(event)
        if isinstance(event, StreamDataReceived):
            stream = self._stream.get(event.stream_id)
            if stream is not None and _excessive(stream):
                self._is_done = True
                self._connection.close(
                    error_code=H3Error.H3_EXCESSIVE_LOAD,
                    reason_phrase=f"a frame or header block above {MAX_FIELD_SECTION_SIZE} bytes",
                )
                return []
        return events

    def _init_connection(self) -> None:
        self._max_table_capacity = 0
        self._blocked_streams = 0
        self._decoder = pylsqpack.Decoder(0, 0)
        super()._init_connection()

    def _get_local_settings(self) -> dict[int, int]:
        settings: dict[int, int] = super()._get_local_settings()
        settings[_SETTINGS_MAX_FIELD_SECTION_SIZE] = MAX_FIELD_SECTION_SIZE
        return settings

    def _check_control_frame_type(self, frame_type: int) -> None:
        super()._check_control_frame_type(frame_type)
        if frame_type == FrameType.GOAWAY:
            self.going_away = True

    def _handle_control_frame(self, frame_type: int, frame_data: bytes) -> None:
        super()._handle_control_frame(frame_type, frame_data)
        if frame_type == FrameType.SETTINGS:
            # Whatever table the peer offers: an encoder without one refers to nothing that
            # could be lost.
            self._encoder = pylsqpack.Encoder()


def _excessive(stream: H3Stream) -> bool:
    """Does this stream hold, or announce that it will make us hold, too much?"""
    if len(stream.buffer) > MAX_FIELD_SECTION_SIZE:
        return True
    buffered = (FrameType.HEADERS, FrameType.PUSH_PROMISE, FrameType.SETTINGS)
    return stream.frame_type in buffered and (stream.frame_size or 0) > MAX_FIELD_SECTION_SIZE
