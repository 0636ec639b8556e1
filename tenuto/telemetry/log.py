"""Events as log lines, text or JSON, on standard error."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading
from datetime import UTC, datetime
from typing import TextIO

from tenuto.redaction import redact
from tenuto.telemetry.events import Event, describe

__all__ = ["LogSink"]

_MOST_LINES = 1000


class LogSink:
    """Call it with an event; it neither raises nor waits.

    A thread writes, for a pipe that nobody reads or a full disk must not stop anybody's
    audio. It may be 1,000 lines behind; what comes beyond them is dropped and counted.
    """

    def __init__(self, role: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
        self.dropped = 0
        self._role = role
        self._as_json = as_json
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_LINES)
        self._stream = stream or sys.stderr
        # aioquic tells of every misbehaving peer; those are counted here instead.
        logging.getLogger("quic").setLevel(logging.CRITICAL)
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def __call__(self, event: Event) -> None:
        try:
            self._lines.put_nowait(self._line(event))
        except queue.Full:
            self.dropped += 1

    def close(self, patience: float = 1.0) -> None:
        """Write what is left, for at most `patience` seconds."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=patience)
        self._writer.join(patience)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            # A log that cannot be written is no reason to stop, or to say so in it.
            with contextlib.suppress(OSError, ValueError):
                self._put(f"{line}\n")

    def _put(self, text: str) -> None:
        """Past Python's own buffers: their locks, held by a write that waits, would keep the
        process from ending.
        """
        try:
            descriptor = self._stream.fileno()
        except OSError:
            self._stream.write(text)  # A stream in memory.
            return
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(descriptor, data) :]

    def _line(self, event: Event) -> str:
        facts = {
            name: redact(value) if isinstance(value, str) else value
            for name, value in describe(event).items()
        }
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            record = {"time": time, "level": event.level.value, "role": self._role, **facts}
            return json.dumps(record)
        name, *fields = facts.items()
        rest = " ".join(f"{key}={_printable(value)}" for key, value in fields)
        return f"{time} {event.level.value:7} {self._role} {name[1]} {rest}".rstrip()


def _printable(value: str | int | float) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    plain = text and text.isprintable() and " " not in text and '"' not in text
    return text if plain else json.dumps(text)
