"""The QUIC half of what touches aioquic's private attributes (1.7.2, pinned exactly).

Every name used here and in `http3` is listed in tests/quic/test_private_names.py, which fails
loudly when a release changes one of them or the routines around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aioquic import tls
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion.base import create_congestion_control
from aioquic.quic.connection import NetworkAddress, QuicConnection, QuicConnectionState
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived, StreamReset
from aioquic.quic.packet import QuicErrorCode
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.quic.recovery import QuicPacketPacer, QuicPacketSpace
from aioquic.quic.stream import QuicStream

from tenuto.quic.datagrams import DatagramQueue
from tenuto.quic.reset import ResetKey, names_token

__all__ = ["Connection", "ReceiveWindow"]

MAX_PEER_STREAMS = 100
"""Streams of each kind a peer may have open."""

SILENCE = 0.300
"""Seconds without a packet after which the next one ends the PTO back-off."""

ABSENCE = 5.0
"""Seconds without a packet after which a peer is away rather than idle: longer than any
PINGs, ours or its own, are apart."""

KEEP_ALIVE = 4.0
"""Seconds without an ack-eliciting packet of ours after which a PING is due."""

MAX_BARE_ACKS = 16
"""Sent packets without anything ack-eliciting that are left alone on an idle connection."""

# A DATAGRAM frame's type and length, an AEAD tag, a short header: what a datagram of
# `max_datagram_size` bytes cannot give to its payload (RFC 9221 section 5, RFC 9000 17.3).
_DATAGRAM_OVERHEAD = 30


@dataclass(frozen=True, slots=True)
class ReceiveWindow:
    """Bytes a peer may send beyond what was consumed: per stream and per connection."""

    stream: int = 64 * 1024
    connection: int = 512 * 1024

    def apply(self, configuration: QuicConfiguration) -> QuicConfiguration:
        """Announce these windows from the first packet on."""
        configuration.max_stream_data = self.stream
        configuration.max_data = self.connection
        return configuration


class Connection(QuicConnection):
    """A `QuicConnection` whose memory is bounded by what we consumed and chose to send.

    Receive windows slide with consumed bytes (upstream they double on the highest offset
    seen, RFC 9000 section 4.1 leaves that open); sending is told how much it holds; the PTO
    back-off ends with the first packet after silence; a validated new address starts with
    a fresh congestion window and RTT (RFC 9000 section 9.4).
    """

    def __init__(
        self,
        *,
        configuration: QuicConfiguration,
        window: ReceiveWindow,
        original_destination_connection_id: bytes | None = None,
        reset_key: ResetKey | None = None,
    ) -> None:
        super().__init__(
            configuration=configuration,
            original_destination_connection_id=original_destination_connection_id,
        )
        self._reset_key = reset_key
        self.was_reset = False
        """The peer has answered with a stateless reset: it knows this connection no more."""
        self._tokens_from_key()
        self._window = window
        self._delivered = 0
        self._unconsumed: dict[int, int] = {}
        self._unconsumed_total = 0
        self._heard_at = self._heard_since = -math.inf
        self._pads = False
        self._path: NetworkAddress | None = None
        self._path_host: str | None = None
        self._local_max_streams_bidi.value = MAX_PEER_STREAMS
        self._local_max_streams_uni.value = MAX_PEER_STREAMS
        self._datagrams_pending = self.datagrams = DatagramQueue()
        self.path_changes = 0
        """How often what the peer sends came from another address or port than before."""
        self.path_resets = 0
        """How often the path state began afresh, for a host's address is another."""

    # What the layers above may ask

    @property
    def established(self) -> bool:
        """The handshake is complete."""
        return self._handshake_complete

    @property
    def may_move(self) -> bool:
        """The handshake is confirmed: before that a client stays where it is (9.1)."""
        return self._handshake_confirmed

    @property
    def closing(self) -> bool:
        """We have sent CONNECTION_CLOSE; it is to be repeated until `get_timer` (10.2.1)."""
        return self._state is QuicConnectionState.CLOSING

    @property
    def smoothed_rtt(self) -> float:
        """Seconds; the configured initial RTT before the first sample."""
        loss = self._loss
        return loss._rtt_smoothed if loss._rtt_initialized else loss._rtt_initial

    @property
    def max_datagram_payload(self) -> int:
        """Bytes one DATAGRAM can carry to this peer; 0 where it does not take any."""
        remote = self._remote_max_datagram_frame_size
        if remote is None:
            return 0
        return max(0, min(remote, self._max_datagram_size) - _DATAGRAM_OVERHEAD)

    @property
    def congestion_window(self) -> int:
        """Bytes in flight that the congestion controller allows."""
        return self._loss.congestion_window

    def unheard(self, now: float) -> float:
        """Seconds since the last genuine packet of the peer."""
        return now - self._heard_at

    def heard_for(self, now: float) -> float:
        """Seconds through which the peer was heard at least every 5 s; 0 while it is not."""
        return 0.0 if self.unheard(now) > ABSENCE else now - self._heard_since

    def held(self, stream_id: int) -> int:
        """Bytes written to a stream and not yet acknowledged: what it costs us in memory."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.sender._buffer_stop - stream.sender._buffer_start

    @property
    def held_in_all(self) -> int:
        """The same for all streams together, those that were finished or reset included."""
        return sum(self.held(stream_id) for stream_id in self._streams)

    def acknowledged(self, stream_id: int) -> int:
        """Bytes of a stream that the peer has, from its start without a hole."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.sender._buffer_start

    def written(self, stream_id: int) -> int:
        """Bytes ever written to a stream."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.sender._buffer_stop

    def unsent(self, stream_id: int) -> int:
        """Bytes of a stream that never left: the windows, the peer's or the path's, are full."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.sender._buffer_stop - stream.sender.highest_offset

    def writable(self, stream_id: int) -> bool:
        """May data still be written: not finished, not reset, not stopped by the peer?"""
        stream = self._streams.get(stream_id)
        if stream is None:
            return not self._stream_is_discarded(stream_id)
        sender = stream.sender
        return (
            sender._buffer_fin is None
            and sender._reset_error_code is None
            and not sender.is_finished
        )

    # Receiving

    def unconsumed(self, stream_id: int, size: int) -> None:
        """Of the data delivered on this stream, `size` bytes are not yet used by anyone.

        The peer's credit grows only as this shrinks.
        """
        self._unconsumed_total += size - self._unconsumed.pop(stream_id, 0)
        if size:
            self._unconsumed[stream_id] = size

    def refuse_rest(self, stream_id: int, error_code: int) -> None:
        """STOP_SENDING, if the peer has not finished this stream."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.receiver.is_finished:
            stream.receiver.stop(error_code)

    def next_event(self) -> QuicEvent | None:
        event = super().next_event()
        if isinstance(event, StreamDataReceived):
            self._delivered += len(event.data)
        elif isinstance(event, StreamReset):
            # What will never be delivered must not count against the connection for ever.
            stream = self._streams.get(event.stream_id)
            if stream is not None:
                receiver = stream.receiver
                self._delivered += receiver.highest_offset - receiver._buffer_start
                receiver._buffer.clear()
        return event

    def receive_datagram(self, data: bytes, addr: NetworkAddress, now: float) -> None:
        due = self._close_at
        super().receive_datagram(data, addr, now)
        if self._close_at == due:
            # No packet in it was genuine: the idle timer did not move.
            if self._is_client and not self.was_reset and self._is_reset(data):
                self._forgotten()
            return
        if now - self._heard_at > SILENCE:
            self._heard_again(now)
        if now - self._heard_at > ABSENCE:
            self._heard_since = now
        self._heard_at = now
        self._notice_path()

    def _heard_again(self, now: float) -> None:
        """After an outage the first sign of life must wait for no back-off, nor for probes that
        bring one packet each: what has been under way for longer than a PTO is sent again, with
        the window of a new path.
        """
        loss = self._loss
        loss._pto_count = 0
        if not self._handshake_complete:
            return
        space = self._spaces[tls.Epoch.ONE_RTT]
        before = now - loss.get_probe_timeout()
        sent = space.sent_packets.values()
        overdue = [p for p in sent if p.in_flight and (p.sent_time or 0.0) < before]
        if overdue:
            loss._on_packets_lost(congestion_event=False, now=now, packets=overdue, space=space)
            self._reset_window()

    def _is_reset(self, data: bytes) -> bool:
        """RFC 9000 section 10.3.1: by the tokens of the connection IDs in use."""
        used = [self._peer_cid, *(path.peer_cid for path in self._network_paths if path.peer_cid)]
        tokens = [each.stateless_reset_token for each in used if each.stateless_reset_token]
        return any(names_token(data, token) for token in tokens)

    def _forgotten(self) -> None:
        """End at once and in silence: there is nobody who could draw any use from a close."""
        self.was_reset = True
        self._close_event = ConnectionTerminated(
            QuicErrorCode.NO_ERROR, None, "the peer has forgotten the connection"
        )
        self._close_end()

    def _replenish_connection_ids(self) -> None:
        super()._replenish_connection_ids()
        self._tokens_from_key()

    def _tokens_from_key(self) -> None:
        """Tokens that another process with the same key can name, in place of random ones."""
        if self._reset_key is not None:
            for each in self._host_cids:
                each.stateless_reset_token = self._reset_key.token(each.cid)

    def _notice_path(self) -> None:
        """Of a server: where its client is now. A client's server stays where it is."""
        if self._is_client or not self._network_paths:
            return
        path = self._network_paths[0]
        if self._path is None:
            self._path, self._path_host = path.addr, path.addr[0]
        elif path.addr != self._path:
            self._path = path.addr
            self.path_changes += 1
        if path.is_validated and path.addr[0] != self._path_host:
            self._path_host = path.addr[0]
            self.path_resets += 1
            self._reset_path()

    def _reset_path(self) -> None:
        """RFC 9000 section 9.4; a new port alone is a NAT rebinding and keeps the state."""
        self._reset_window()
        loss = self._loss
        loss._rtt_initialized = False
        loss._rtt_min = math.inf
        loss._rtt_latest = loss._rtt_smoothed = loss._rtt_variance = 0.0
        loss._pto_count = 0

    def _reset_window(self) -> None:
        loss = self._loss
        in_flight = loss.bytes_in_flight
        size = self._max_datagram_size
        loss._cc = create_congestion_control(
            self._configuration.congestion_control_algorithm, max_datagram_size=size
        )
        loss._cc.bytes_in_flight = in_flight
        loss._pacer = QuicPacketPacer(max_datagram_size=size)

    # Sending

    def keep_alive(self, now: float, *, expecting: bool) -> bool:
        """Queue a PING where one is due; True if so.

        Due when we sent nothing ack-eliciting for 4 s and either audio is expected to flow
        or a peer that keeps sending has drawn many bare ACKs from us: they are remembered
        until something that is answered follows them.
        """
        if not self._handshake_confirmed:
            return False
        if now - self._loss._time_of_last_sent_ack_eliciting_packet < KEEP_ALIVE:
            return False
        remembered = len(self._spaces[tls.Epoch.ONE_RTT].sent_packets)
        if not expecting and remembered < MAX_BARE_ACKS:
            return False
        self.send_ping(0)
        return True

    def probe(self, *, padded: bool) -> None:
        """Queue a PING that no congestion window holds back and that is not repeated if lost.

        Padded to a full datagram, it allows a server three of them on a path that is new to it
        (RFC 9000 section 8.1).
        """
        if self._handshake_complete:
            self._probe_pending = True
            self._pads = self._pads or padded

    def move(self, *, new_path: bool) -> None:
        """What follows leaves from another port of ours; call it where `may_move`.

        Another connection ID, so that nobody on the way can join the two (9.5); with `new_path`,
        from another address of ours, window and RTT begin afresh (9.4).
        """
        self.change_connection_id()
        self._loss._pto_count = 0
        if new_path:
            self.path_resets += 1
            self._reset_path()

    def _write_ping_frame(
        self, builder: QuicPacketBuilder, uids: Sequence[int] = (), comment: str = ""
    ) -> None:
        super()._write_ping_frame(builder, list(uids), comment)
        if self._pads:
            self._pads = False
            builder._datagram_needs_padding = True

    def send_datagram_frame(self, data: bytes) -> None:
        """Unsupported: a datagram needs the time it was queued at (`send_datagram`)."""
        raise TypeError("queue datagrams with send_datagram(data, now)")

    def send_datagram(self, data: bytes, now: float) -> None:
        """Queue a DATAGRAM; `ValueError` if this peer or path can never carry it."""
        room = self.max_datagram_payload
        if len(data) > room:
            raise ValueError(f"a datagram of {len(data)} bytes; this peer takes {room}")
        self.datagrams.put(data, now)

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, NetworkAddress]]:
        if not self._network_paths:
            return []  # Nothing genuine was ever received: there is nobody to answer.
        self.datagrams.expire(now)
        return super().datagrams_to_send(now)

    def _write_connection_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace) -> None:
        limit = self._local_max_data
        target = self._delivered - self._unconsumed_total + self._window.connection
        if target - limit.value >= self._window.connection // 2:
            limit.value = target
        # The base class doubles the value once more than half of it is used.
        used, limit.used = limit.used, 0
        try:
            super()._write_connection_limits(builder, space)
        finally:
            limit.used = used

    def _write_stream_limits(
        self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream
    ) -> None:
        receiver = stream.receiver
        if receiver.is_finished:
            return
        if stream.max_stream_data_local:
            unconsumed = self._unconsumed.get(stream.stream_id or 0, 0)
            consumed = receiver._buffer_start - unconsumed
            target = consumed + self._window.stream
            if target - stream.max_stream_data_local >= self._window.stream // 2:
                stream.max_stream_data_local = target
        highest, receiver.highest_offset = receiver.highest_offset, 0
        try:
            super()._write_stream_limits(builder, space, stream)
        finally:
            receiver.highest_offset = highest
