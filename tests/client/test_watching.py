"""A watch and its stream, in virtual time: when it moves, and when it leaves well alone."""

from __future__ import annotations

import asyncio
from typing import Any

from tenuto.client.events import EventLog, Suspected
from tenuto.client.exchange import TransportChoice
from tenuto.client.parking import Parking
from tenuto.client.paths import Paths
from tenuto.client.pathstore import PathStore
from tenuto.client.watch import WATCH, Watch
from tests.support.virtualtime import run_in_virtual_time


class Leg:
    transport = "quic"

    def __init__(self) -> None:
        self.pings = 0

    def ping(self) -> None:
        self.pings += 1


class Listener:
    """A stream that only tells what it was asked for."""

    def __init__(self, transport: str = "quic") -> None:
        self.leg: Any = Leg()
        self.leg.transport = transport
        self.over = self.changing = False
        self.changes: list[str] = []
        self.stays: list[str] = []
        self.log = EventLog(None)
        clock = asyncio.get_running_loop().time
        self.paths = Paths(PathStore(clock=clock), "https://localhost:4433")
        self.watch = Watch(self, WATCH, "auto", 2.0, self.paths, self.log)
        self.next = 0

    def change(self, transport: TransportChoice, reason: str) -> None:
        self.changes.append(reason)
        self.changing = True

    def stay(self, reason: str) -> None:
        self.stays.append(reason)

    def took(self, frames: int, *, alive: bool = False) -> None:
        self.watch.rest()
        self.next += frames
        self.watch.took(frames, self.next, alive=alive)
        self.watch.attend()

    async def hear(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.02)):
            await asyncio.sleep(0.02)
            self.took(1)


def test_a_leg_that_was_superseded_gives_nothing_up() -> None:
    """What it still held comes with the word that the new leg has got through."""

    async def script() -> None:
        one, other = Listener(), Listener()
        for listener in (one, other):
            listener.watch.attend()
            await listener.hear(1.0)
            await asyncio.sleep(1.1)
            assert listener.changes == ["black hole"]
        one.watch.superseded()
        for listener in (one, other):
            listener.took(100)
            listener.watch.close()
        assert not one.stays
        assert other.stays == ["its own leg delivers again"]

    run_in_virtual_time(script())


def test_a_flush_in_a_pause_wakes_nobody() -> None:
    async def script() -> None:
        listener = Listener()
        listener.watch.attend()
        await listener.hear(1.0)
        listener.watch.sleep()
        listener.watch.begin(100)
        pings = listener.leg.pings
        await asyncio.sleep(60)
        assert listener.watch.sleeping
        assert listener.leg.pings == pings
        assert not listener.changes
        listener.watch.wake(100)
        await asyncio.sleep(1.2)
        assert listener.changes == ["black hole"]
        listener.watch.close()

    run_in_virtual_time(script())


def test_what_comes_late_behind_a_hole_is_no_reason_to_move() -> None:
    async def script() -> None:
        listener = Listener()
        listener.watch.attend()
        await listener.hear(40.0)
        await asyncio.sleep(4.0)
        assert [event for event in listener.log.recent if isinstance(event, Suspected)]
        listener.changing = False
        listener.watch.stayed("tcp", "black hole", failed=True)
        for _ in range(20):
            listener.took(10)
        await listener.hear(6.0)
        assert listener.changes == ["black hole"]
        listener.watch.close()

    run_in_virtual_time(script())


def test_quic_that_has_carried_a_stream_for_a_while_is_forgiven_all() -> None:
    """Also where the stream began on it: else a failure a month would end in an hour of TCP."""

    async def script() -> None:
        listener = Listener()
        listener.paths.failed("quic")
        listener.watch.attend()
        await listener.hear(29.0)
        assert listener.paths.reprobe_in() > 0
        await listener.hear(2.0)
        assert listener.paths.reprobe_in() == 0
        listener.paths.failed("quic")
        assert listener.paths.reprobe_in() == 300
        listener.watch.changed(listener.next)  # Resumed, over QUIC again.
        await listener.hear(31.0)
        listener.paths.failed("quic")
        assert listener.paths.reprobe_in() == 300
        listener.watch.close()

    run_in_virtual_time(script())


def test_a_way_back_that_did_not_fail_is_no_failure_of_quic() -> None:
    """It was given up, or the server refused."""

    async def script() -> None:
        for failed in (True, False):
            listener = Listener("tcp")
            listener.watch.attend()
            await listener.hear(31.0)
            assert listener.changes == ["QUIC again"]
            listener.changing = False
            listener.watch.stayed("quic", "QUIC again", failed=failed)
            assert (listener.paths.reprobe_in() > 0) == failed
            listener.watch.close()

    run_in_virtual_time(script())


def test_nobody_is_parked_while_the_server_is_being_told() -> None:
    async def script() -> None:
        loop = asyncio.get_running_loop()
        parked: list[float] = []

        def park() -> None:
            parked.append(loop.time() - began)
            parking.enter()

        parking = Parking(10.0, park)
        began = loop.time()
        parking.paused(1800)
        await asyncio.sleep(9.9)
        with parking.held():  # A command that fails: the pause goes on.
            await asyncio.sleep(5)
        await asyncio.sleep(9)
        with parking.held(), parking.held():
            await asyncio.sleep(5)
            parking.leave()  # And one that ends it.
        await asyncio.sleep(60)
        assert not parked
        parking.paused(1800)
        await asyncio.sleep(11)
        assert len(parked) == 1

    run_in_virtual_time(script())
