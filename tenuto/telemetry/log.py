"""Events as log lines, text or JSON, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from tenuto.telemetry.events import Event, Level, describe

__all__ = ["LogSink"]

_LEVELS = {
    Level.INFO: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.ERROR: logging.ERROR,
}


class LogSink:
    """Call it with an event; it never raises, since a full disk must not stop a session."""

    def __init__(self, role: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
        self._role = role
        self._as_json = as_json
        self._logger = logging.getLogger(f"tenuto.{role}")
        self._logger.propagate = False
        self._logger.setLevel(logging.INFO)
        handler = logging.StreamHandler(stream or sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        self._logger.handlers = [handler]
        # aioquic tells of every misbehaving peer; those are counted here instead.
        logging.getLogger("quic").setLevel(logging.CRITICAL)

    def __call__(self, event: Event) -> None:
        facts = describe(event)
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            record = {"time": time, "level": event.level.value, "role": self._role, **facts}
            line = json.dumps(record)
        else:
            name, *fields = facts.items()
            rest = " ".join(f"{key}={_printable(value)}" for key, value in fields)
            line = f"{time} {event.level.value:7} {self._role} {name[1]} {rest}".rstrip()
        self._logger.log(_LEVELS[event.level], "%s", line)


def _printable(value: str | int | float) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    quoted = text and text.isprintable() and " " not in text and '"' not in text
    return text if quoted else json.dumps(text)
