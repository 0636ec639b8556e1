"""What `tenuto.quic`'s connection and http3 reach into: aioquic 1.7.2; this fails when it moves.

When a new release is taken: read what changed around each name, then correct the lists.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from importlib.metadata import version
from pathlib import Path

import aioquic.h3.connection as h3
import aioquic.quic.connection as quic
import aioquic.quic.packet_builder as builder
import aioquic.quic.recovery as recovery
import aioquic.quic.stream as stream
import pytest
from aioquic.h3.connection import H3Connection, H3Stream
from aioquic.quic.recovery import QuicPacketPacer, QuicPacketRecovery, QuicPacketSpace

from tenuto.quic import Connection, Http3
from tenuto.tls import DevPair
from tests.support.virtual import VirtualPair

ROOT = Path(__file__).parents[2]
TOUCHES = (ROOT / "tenuto" / "quic" / "connection.py", ROOT / "tenuto" / "quic" / "http3.py")

CONNECTION = {
    "_close_at",
    "_close_end",
    "_close_event",
    "_configuration",
    "_datagrams_pending",
    "_handshake_complete",
    "_handshake_confirmed",
    "_host_cids",
    "_is_client",
    "_local_max_data",
    "_local_max_streams_bidi",
    "_local_max_streams_uni",
    "_loss",
    "_max_datagram_size",
    "_network_paths",
    "_peer_cid",
    "_probe_pending",
    "_remote_max_datagram_frame_size",
    "_replenish_connection_ids",
    "_spaces",
    "_state",
    "_stream_is_discarded",
    "_streams",
    "_write_connection_limits",
    "_write_ping_frame",
    "_write_stream_limits",
}
BUILDER = {"_datagram_needs_padding"}
RECOVERY = {
    "_cc",
    "_pacer",
    "_on_packets_lost",
    "_pto_count",
    "_rtt_initial",
    "_rtt_initialized",
    "_rtt_latest",
    "_rtt_min",
    "_rtt_smoothed",
    "_rtt_variance",
    "_time_of_last_sent_ack_eliciting_packet",
}
SENDER = {"_buffer_start", "_buffer_stop", "_buffer_fin", "_reset_error_code"}
RECEIVER = {"_buffer", "_buffer_start"}
HTTP3 = {
    "_blocked_streams",
    "_check_control_frame_type",
    "_decoder",
    "_encoder",
    "_get_local_settings",
    "_handle_control_frame",
    "_init_connection",
    "_is_done",
    "_local_control_stream_id",
    "_max_table_capacity",
    "_stream",
}
OURS = {
    "_connection",
    "_delivered",
    "_excessive",
    "_forgotten",
    "_heard_at",
    "_heard_since",
    "_heard_again",
    "_is_reset",
    "_newest_request",
    "_notice_path",
    "_pads",
    "_path",
    "_path_host",
    "_refused_from",
    "_reset_key",
    "_reset_path",
    "_reset_window",
    "_tokens_from_key",
    "_unconsumed",
    "_unconsumed_total",
    "_window",
}

# Routines whose behaviour the overrides rely on, by the first 12 digits of SHA-256 of their
# source.
ROUTINES = {
    quic.QuicConnection.receive_datagram: "3c7f29826050",
    quic.QuicConnection.datagrams_to_send: "f4eb22c8add2",
    quic.QuicConnection._write_application: "c37bf64378f7",
    quic.QuicConnection._write_connection_limits: "02c42c5455ae",
    quic.QuicConnection._write_stream_limits: "398d4a898f7c",
    quic.QuicConnection._handle_stream_frame: "8c79348a854e",
    quic.QuicConnection._handle_reset_stream_frame: "0a1801842064",
    quic.QuicConnection._stream_is_discarded: "d4812b696802",
    quic.QuicConnection._replenish_connection_ids: "73b127efb89c",
    quic.QuicConnection._close_end: "7e32d95840a6",
    quic.QuicConnection._serialize_transport_parameters: "be651f3ddfcd",
    quic.QuicConnection._write_ping_frame: "cfcbc98ac33c",
    quic.QuicConnection._on_ping_delivery: "abbf7781ffcb",
    quic.QuicConnection._send_probe: "4578820ab6bb",
    quic.QuicConnection.change_connection_id: "60bf2f7b2c86",
    quic.QuicConnection._retire_peer_cid: "be63087f9068",
    quic.QuicConnection._consume_peer_cid: "13a5b8e0d4da",
    quic.QuicConnection._add_network_path: "4135b581b4d5",
    quic.QuicConnection._abandon_path_validation: "bd71c1680e70",
    builder.QuicPacketBuilder: "f857fd05613d",
    quic.QuicConnection.next_event: "1c682ae04b38",
    stream.QuicStreamReceiver: "78596a9b1406",
    stream.QuicStreamSender: "f14fb859f32d",
    recovery.QuicPacketRecovery: "dac13f4da9d2",
    recovery.QuicPacketPacer: "d845e32503fb",
    h3.H3Connection._init_connection: "5dbdb7d87fbc",
    h3.H3Connection._get_local_settings: "6d1ff1ffc258",
    h3.H3Connection._check_control_frame_type: "0911d1bcb387",
    h3.H3Connection._handle_control_frame: "2a362270311d",
    h3.H3Connection.handle_event: "244473969c52",
    h3.H3Connection.send_data: "5f330a6a35fc",
    h3.H3Connection.send_headers: "ef9cb56c7f86",
    h3.H3Connection._receive_stop_sending: "99433b86dab1",
    h3.H3Connection._receive_stream_reset: "916dddd6b857",
    h3.H3Stream: "6a806c9ffca8",
}


def private(tree: ast.AST) -> set[str]:
    """Private attribute names that a module reads or writes, and methods it overrides."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_the_pin_is_the_release_that_was_read() -> None:
    assert version("aioquic") == "1.7.2"


def test_every_private_name_in_use_is_listed_here() -> None:
    used = set().union(*(private(ast.parse(path.read_text())) for path in TOUCHES))
    listed = CONNECTION | RECOVERY | SENDER | RECEIVER | BUILDER | HTTP3 | OURS
    assert used - listed == set()
    assert listed - used == set()


def test_every_listed_name_exists_on_live_objects(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    connection = pair.server.quic
    assert isinstance(connection, Connection)
    pair.client.quic.send_stream_data(0, b"x")
    pair.transmit(pair.client)
    pair.run(0.2)
    assert [name for name in CONNECTION if not hasattr(connection, name)] == []
    assert isinstance(connection._loss, QuicPacketRecovery)
    assert [name for name in RECOVERY if not hasattr(connection._loss, name)] == []
    assert isinstance(connection._loss._pacer, QuicPacketPacer)
    live = connection._streams[0]
    assert [name for name in SENDER if not hasattr(live.sender, name)] == []
    assert [name for name in RECEIVER if not hasattr(live.receiver, name)] == []
    assert all(isinstance(space, QuicPacketSpace) for space in connection._spaces.values())
    http = Http3(connection)
    assert isinstance(http, H3Connection)
    assert [name for name in HTTP3 if not hasattr(http, name)] == []
    made = builder.QuicPacketBuilder(
        host_cid=b"", peer_cid=b"", version=1, is_client=True, max_datagram_size=1200
    )
    assert [name for name in BUILDER if not hasattr(made, name)] == []
    assert {"buffer", "frame_type", "frame_size", "sending_ended"} <= vars(H3Stream(0)).keys()


@pytest.mark.parametrize("routine", ROUTINES, ids=lambda routine: routine.__qualname__)
def test_the_routines_around_them_are_those_that_were_read(routine: object) -> None:
    source = inspect.getsource(routine)  # type: ignore[arg-type]
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    assert digest == ROUTINES[routine], f"{routine} changed: read it again, then note {digest}"


def test_no_other_module_touches_them() -> None:
    theirs = (CONNECTION | RECOVERY | SENDER | RECEIVER | BUILDER | HTTP3) - {"_loss"}
    for package in ("tenuto", "quicserver", "fallback", "netem", "bench"):
        for path in (ROOT / package).rglob("*.py"):
            if path in TOUCHES:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Attribute) or node.attr not in theirs:
                    continue
                owner = node.value
                own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
                assert own, f"{path}:{node.lineno} touches {node.attr}"
