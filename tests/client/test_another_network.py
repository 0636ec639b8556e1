"""The network has changed while something was under way on the one before."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tenuto.client import ConnectError, PathStore, Rebound, Trust, WatchPolicy, open_stream
from tenuto.policy import CoolDown
from tenuto.wire import End, Format
from tests.client.authority import Pair
from tests.client.peer import AUDIO, Asked, Out, TcpOut, frames, records, serving
from tests.client.test_resume import QUICK

COUNT = 100

SOON_PARKED = WatchPolicy(park_after=0.1)


class Server:
    """Takes a second for its frames, and says nothing to the requests that it is to swallow."""

    def __init__(self, *swallowed: int, commands: int = 1000) -> None:
        self.swallowed = swallowed
        self.asked = 0
        self.answered = commands
        """So many commands have an answer, the next one has none."""
        self.commanded = 0
        self.paused = asyncio.Event()

    async def __call__(self, asked: Asked, out: Out) -> None:
        if "control" in asked.path:
            self.commanded += 1
            if self.commanded == self.answered + 1:
                return
            if b"pause" in asked.body:
                self.paused.set()
            await out.head(200, "application/json")
            await out.send(b"{}")
            await out.end()
            return
        self.asked += 1
        if self.asked in self.swallowed:
            return
        start = int(asked.path.partition("from=")[2].partition("&")[0] or 0)
        await out.head(tenuto_session="s-1")
        await out.send(records(Format(AUDIO, start)))
        for frame in frames(COUNT - start, start):
            if self.paused.is_set() and start == 0:
                return
            await out.send(records(frame))
            await asyncio.sleep(0.01)
        await out.send(records(End(COUNT, COUNT * AUDIO.samples_per_frame)))
        await out.end()


async def test_what_was_being_opened_on_the_one_before_is_given_up(
    pair: Pair, trust: Trust
) -> None:
    """Else no other move could begin for as long as it has."""
    server = Server(2)
    async with (
        serving(pair, server) as peer,
        open_stream(peer.url(), transport="quic", trust=trust, memory=PathStore()) as stream,
    ):
        got = [await anext(stream)]
        moving = asyncio.create_task(stream.move("tcp"))
        while server.asked < 2:
            await asyncio.sleep(0.01)
        stream.rebind()
        with pytest.raises(ConnectError, match="the network has changed"):
            await asyncio.wait_for(moving, 1)
        assert [event for event in stream.events if isinstance(event, Rebound)]
        await stream.move("tcp")
        assert stream.transport == "tcp"
        got += [frame async for frame in stream]
    assert got == frames(COUNT)


async def test_a_pause_ends_on_another_network(pair: Pair, trust: Trust) -> None:
    """The attempt that the one before has swallowed had seconds, who says `resume` has not."""
    server = Server(2, 3)
    async with (
        serving(pair, server) as peer,
        open_stream(
            peer.url(), transport="tcp", trust=trust, memory=PathStore(), watch=SOON_PARKED
        ) as stream,
    ):
        got = [await anext(stream) for _ in range(5)]
        await stream.pause()
        reading = asyncio.create_task(anext(stream))
        async with asyncio.timeout(5):
            while not stream.parked:
                await asyncio.sleep(0.01)
            resuming = asyncio.create_task(stream.resume())
            for swallowed in server.swallowed:
                while server.asked < swallowed:
                    await asyncio.sleep(0.01)
                stream.rebind()
            await resuming
        got += [await reading, *[frame async for frame in stream]]
    assert got == frames(COUNT)


async def test_two_that_end_a_pause_at_once_are_both_told(pair: Pair, trust: Trust) -> None:
    server = Server(2, 3)
    async with (
        serving(pair, server) as peer,
        open_stream(
            peer.url(), transport="tcp", trust=trust, memory=PathStore(), watch=SOON_PARKED
        ) as stream,
    ):
        got = [await anext(stream) for _ in range(5)]
        await stream.pause()
        reading = asyncio.create_task(anext(stream))
        async with asyncio.timeout(5):
            while not stream.parked:
                await asyncio.sleep(0.01)
            resuming = [asyncio.create_task(stream.resume()) for _ in range(2)]
            while server.asked < 3:
                await asyncio.sleep(0.01)
            stream.rebind()
            assert await asyncio.gather(*resuming) == [{}, {}]
        got += [await reading, *[frame async for frame in stream]]
    assert got == frames(COUNT)


async def test_a_resume_that_waits_ends_with_the_stream(pair: Pair, trust: Trust) -> None:
    server = Server(2)
    async with (
        serving(pair, server) as peer,
        open_stream(
            peer.url(), transport="tcp", trust=trust, memory=PathStore(), watch=SOON_PARKED
        ) as stream,
    ):
        await anext(stream)
        await stream.pause()
        reading = asyncio.create_task(anext(stream))
        while not stream.parked:
            await asyncio.sleep(0.01)
        resuming = asyncio.create_task(stream.resume())
        while server.asked < 2:
            await asyncio.sleep(0.01)
        await stream.aclose()
        with pytest.raises(ConnectError, match="the stream is closed"):
            await asyncio.wait_for(resuming, 1)
        reading.cancel()


async def test_commands_leave_their_connection_too(pair: Pair, trust: Trust) -> None:
    async with (
        serving(pair, Server()) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, memory=PathStore()) as stream,
    ):
        for _ in range(2):
            await stream.flush()
            await stream.flush()
            stream.rebind()
        ports = [
            out._writer.get_extra_info("peername")
            for (_, asked), out in zip(peer.asked, peer.outs, strict=True)
            if "control" in asked.path and isinstance(out, TcpOut)
        ]
    assert ports[0] == ports[1] != ports[2] == ports[3]


@pytest.mark.parametrize("commands", [0, 1])
async def test_a_command_does_not_wait_for_the_one_before(
    pair: Pair, trust: Trust, commands: int
) -> None:
    """It has five seconds; who said it hears of it at once, be its connection new or not."""
    server = Server(commands=commands)
    async with (
        serving(pair, server) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, memory=PathStore()) as stream,
    ):
        got = [await anext(stream)]
        for _ in range(commands):
            await stream.flush()
        saying = asyncio.create_task(stream.flush())
        while server.commanded == commands:
            await asyncio.sleep(0.01)
        stream.rebind()
        assert await asyncio.wait_for(saying, 2) == {}
        got += [frame async for frame in stream]
    keys = {asked.headers["idempotency-key"] for _, asked in peer.asked[1:] if asked.body}
    assert len(keys) == commands + 1
    assert got == frames(COUNT)


async def test_what_is_known_of_the_one_before_is_not_true_of_it(pair: Pair, trust: Trust) -> None:
    """An app that follows the network by itself says so by `rebind`."""
    networks = iter(["home"])

    def identify(addresses: object) -> str:
        return next(networks, "café")

    memory = PathStore(identify=identify, clock=lambda: 1000.0)
    async with serving(pair, Server()) as peer:
        memory.put("home", f"https://localhost:{peer.port}", CoolDown(1, 1100.0))
        async with open_stream(
            peer.url(), trust=trust, memory=memory, follow_network=False
        ) as stream:
            assert stream.transport == "tcp"
            await anext(stream)
            stream.rebind()
            async for _ in stream:
                pass
            assert stream.transport == "quic"


async def test_who_cannot_tell_networks_apart_goes_on_all_the_same(
    pair: Pair, trust: Trust
) -> None:
    opened = False

    def identify(addresses: object) -> str:
        if opened:
            raise RuntimeError("the app's own")
        return "home"

    async with (
        serving(pair, Server()) as peer,
        open_stream(
            peer.url(), transport="quic", trust=trust, memory=PathStore(identify=identify)
        ) as stream,
    ):
        await anext(stream)
        opened = True
        with pytest.raises(RuntimeError):
            stream.rebind()
        assert [event for event in stream.events if isinstance(event, Rebound)]


SEED = 3


async def test_networks_that_come_and_go_all_the_time_cost_no_frame(
    pair: Pair, trust: Trust
) -> None:
    """Also while the stream is interrupted, in every step of the way to another leg."""
    draw = Random(SEED)
    async with (
        serving(pair, Server()) as peer,
        open_stream(peer.url(), trust=trust, memory=PathStore(), resume=QUICK) as stream,
    ):
        got = [await anext(stream)]

        async def read() -> None:
            got.extend([frame async for frame in stream])

        reading = asyncio.create_task(read())
        for number in range(300):
            if number % 30 == 0:
                stream._flow.leg.abort()
            stream.rebind()
            await asyncio.sleep(draw.choice([0, 0, 0.0005, 0.002, 0.01]))
        async with asyncio.timeout(10):
            await reading
    assert got == frames(COUNT), f"seed {SEED}"
