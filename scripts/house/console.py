"""What the scripts say: on standard error, so that a program's own output stays clean."""

import os
import shutil
import sys
import time
from typing import TextIO

__all__ = ["Console"]

_QUIET_SECONDS = 10.0
"""Where lines cannot be rewritten (a log), a sign of life that often."""


class Console:
    """Plain lines, and one status line that is rewritten in place on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._live = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self._status_shown = False
        self._last_line = 0.0

    def line(self, text: str) -> None:
        """A line that stays."""
        self._erase()
        self._write(text + "\n")
        self._last_line = time.monotonic()

    def status(self, text: str) -> None:
        """What is going on at the moment; the next line or status takes its place."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{text[:width]}")
            self._status_shown = True
        elif time.monotonic() - self._last_line >= _QUIET_SECONDS:
            self.line(text)

    def _erase(self) -> None:
        if self._status_shown:
            self._write("\r\x1b[K")
            self._status_shown = False

    def _write(self, text: str) -> None:
        encoding = self._out.encoding or "ascii"
        # A folder's name may hold what this terminal cannot show.
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._out.flush()
