"""Datagrams that the kernel dropped because nobody read them in time, as Linux counts them."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable
from pathlib import Path

__all__ = ["count_drops", "kernel_drops"]

_TABLES = (Path("/proc/net/udp"), Path("/proc/net/udp6"))
_INODE, _DROPS = 9, 12
"""Columns of a line, counted from 0."""


def kernel_drops(sockets: Iterable[socket.socket]) -> int:
    """Of these sockets since each was opened; 0 where the system does not tell."""
    inodes = {os.fstat(each.fileno()).st_ino for each in sockets}
    total = 0
    for table in _TABLES:
        with contextlib.suppress(OSError):
            total += count_drops(table.read_text(encoding="ascii"), inodes)
    return total


def count_drops(table: str, inodes: set[int]) -> int:
    """The sum over the lines of `/proc/net/udp` that are about these sockets."""
    total = 0
    for line in table.splitlines()[1:]:
        columns = line.split()
        if len(columns) > _DROPS and int(columns[_INODE]) in inodes:
            total += int(columns[_DROPS])
    return total
