"""Results of a run of before, from a file that may be anything."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from bench.lab.record import Results, unreadable
from tenuto.cli.place import shown

__all__ = ["LARGEST", "read_results"]

LARGEST: Final = 256 << 20
"""Bytes; a default run has about one million."""


def read_results(path: Path) -> Results:
    """Raises `OperatorError`."""
    name = shown(str(path))
    try:
        # A FIFO would make us wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise unreadable(name, "it is no plain file")
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unreadable(name, why) from None
    if len(data) > LARGEST:
        raise unreadable(name, f"it is larger than {LARGEST >> 20} MiB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise unreadable(name, f"it is no UTF-8 text (byte {error.start})") from None
    return Results.from_json(text, name)
