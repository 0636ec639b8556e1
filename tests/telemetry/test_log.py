"""Log lines: text and JSON, and a reader that does not read stops nobody."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time

from tenuto.telemetry.events import DoorOpened, PeerFaulted, ServerStopped
from tenuto.telemetry.log import LogSink


def test_text_names_time_level_role_and_fields() -> None:
    stream = io.StringIO()
    sink = LogSink("server", stream=stream)
    sink(DoorOpened("quic", "127.0.0.1:4433", 4096))
    sink(PeerFaulted("tcp", 'ValueError("a b\nc")', "peer.py:12"))
    sink(ServerStopped(3, 1.23456))
    sink.close()
    first, second, third = stream.getvalue().splitlines()
    assert first.endswith(" info    server DoorOpened door=quic address=127.0.0.1:4433 buffer=4096")
    assert " error   server PeerFaulted" in second
    assert "\\n" in second  # A line of ours stays one line.
    assert third.endswith("ServerStopped sessions=3 seconds=1.235")


def test_json_lines_are_objects() -> None:
    stream = io.StringIO()
    sink = LogSink("server", as_json=True, stream=stream)
    sink(DoorOpened("tcp", "[::1]:4433", 8192))
    sink.close()
    record = json.loads(stream.getvalue())
    assert record["event"] == "DoorOpened"
    assert record["level"] == "info"
    assert record["role"] == "server"
    assert record["address"] == "[::1]:4433"


def test_a_pipe_that_nobody_reads_blocks_nobody_and_drops_are_counted() -> None:
    reader, writer = os.pipe()
    # What is still buffered cannot be flushed when the stream closes.
    with contextlib.suppress(BrokenPipeError), open(writer, "w", encoding="utf-8") as stream:
        sink = LogSink("server", stream=stream)
        began = time.monotonic()
        for number in range(5000):
            sink(DoorOpened("quic", "x" * 100, number))
        took = time.monotonic() - began
        assert sink.dropped > 1000
        # Each write to the full pipe would have waited for ever.
        assert took < 5
        os.close(reader)
        sink.close()


def test_a_stream_that_cannot_be_written_is_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    sink = LogSink("server", stream=stream)
    sink(ServerStopped(0, 0.0))
    sink.close()
    assert sink.dropped == 0
