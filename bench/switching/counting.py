"""Packets of a network, as the kernel counts them: asked for by who is in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["Counts", "count", "counted", "read_snmp"]

Counts = tuple[float, int, int, int]
"""A moment, and until then: UDP datagrams sent, TCP segments sent, TCP connections begun."""

_INTERVAL: Final = 1.0
_WANTED: Final = (("Udp", "OutDatagrams"), ("Tcp", "OutSegs"), ("Tcp", "ActiveOpens"))


def read_snmp(lines: Iterable[str]) -> dict[tuple[str, str], int]:
    """A file like /proc/net/snmp: a line of names, then one of values, for each protocol."""
    found: dict[tuple[str, str], int] = {}
    names: dict[str, list[str]] = {}
    for line in lines:
        protocol, _, rest = line.partition(":")
        if protocol in names:
            values = map(int, rest.split())
            found |= {
                (protocol, name): value for name, value in zip(names[protocol], values, strict=True)
            }
        else:
            names[protocol] = rest.split()
    return found


def count() -> Counts:
    """Of the network that this process is in, whatever the address family."""
    told = read_snmp(Path("/proc/self/net/snmp").read_text(encoding="ascii").splitlines())
    datagrams, segments, opens = (told[name] for name in _WANTED)
    for line in Path("/proc/self/net/snmp6").read_text(encoding="ascii").splitlines():
        name, value = line.split()
        if name == "Udp6OutDatagrams":
            datagrams += int(value)
    return time.monotonic(), datagrams, segments, opens


async def counted(counts: list[Counts]) -> None:
    """Each second, until it is cancelled, and once then."""
    try:
        while True:
            counts.append(count())
            await asyncio.sleep(_INTERVAL)
    finally:
        counts.append(count())
