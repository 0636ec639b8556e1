"""Probes over real sockets, to what is no server of QUIC."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from tenuto.client import Address
from tenuto.doctor.diagnosis.evidence import Ledger
from tenuto.doctor.diagnosis.reach import Udp, judge_reach
from tenuto.doctor.diagnosis.train import Order, Train
from tenuto.doctor.probing import Probing


class Service(asyncio.DatagramProtocol):
    """Answers each datagram with the first `size` bytes of it, its version being `version`."""

    def __init__(self, size: int, version: bytes) -> None:
        self._size = size
        self._version = version

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        said = data[:1] + (self._version or data[1:5]) + data[5:]
        for _ in range(3):
            self._transport.sendto(said[: self._size], addr)


async def probed(size: int, version: bytes) -> Ledger:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: Service(size, version), local_addr=("127.0.0.1", 0)
    )
    port = transport.get_extra_info("sockname")[1]
    train = Train(tuple(Order(0.01 * number, 0, number, 1228) for number in range(4)))
    try:
        probing = Probing(Address(socket.AF_INET, ("127.0.0.1", port)))
        return await probing.examine(lambda ledger: None if ledger.probes else train)
    finally:
        transport.close()


@pytest.mark.parametrize(("size", "version"), [(1200, b""), (1, b"\0\0\0\0"), (9, b"\0\0\0\1")])
async def test_what_is_no_answer_is_counted_as_such(size: int, version: bytes) -> None:
    ledger = await probed(size, version)
    assert (ledger.answered, ledger.strange) == (0, 12)
    assert judge_reach(ledger).udp is Udp.FOREIGN


async def test_an_answer_counts_once() -> None:
    ledger = await probed(40, b"\0\0\0\0")
    assert (len(ledger.probes), ledger.answered, ledger.strange) == (4, 4, 0)
