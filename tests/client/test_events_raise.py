"""A listener to events that raises is told so where it asks for frames, and loses none."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.client import (
    Event,
    FormatAnnounced,
    Interrupted,
    Moved,
    PathStore,
    Resumed,
    Retrying,
    Stream,
    Suspected,
    TransportChosen,
    Trust,
    WatchPolicy,
    open_stream,
)
from tenuto.client.events import Finished
from tenuto.wire import End, Format
from tests.client.authority import Pair
from tests.client.peer import AUDIO, Asked, Out, frames, records, serving

COUNT = 100


class BoomError(Exception):
    """The caller's own bug."""


class Raises:
    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind
        self.times = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, self.kind):
            self.times += 1
            raise BoomError(self.kind.__name__)


async def slowly(asked: Asked, out: Out) -> None:
    """From where the listener was, a second in all."""
    start = int(asked.path.partition("from=")[2].partition("&")[0] or 0)
    await out.head(tenuto_session="s-1")
    await out.send(records(Format(AUDIO, start)))
    for frame in frames(COUNT - start, start):
        await out.send(records(frame))
        await asyncio.sleep(0.01)
    await out.send(records(End(COUNT, COUNT * AUDIO.samples_per_frame)))
    await out.end()


async def hear(stream: Stream) -> tuple[list[int], list[str]]:
    heard: list[int] = []
    raised: list[str] = []
    moving: asyncio.Task[None] | None = None
    while not stream.complete:
        try:
            heard.append((await anext(stream)).sequence)
        except BoomError as boom:
            raised.append(str(boom))
        except StopAsyncIteration:
            break
        if len(heard) == 20 and moving is None:
            moving = asyncio.ensure_future(stream.move("tcp"))
        if len(heard) == 60 and len(raised) < 1:
            stream._flow.leg.abort()
    assert moving is not None
    await moving
    return heard, raised


@pytest.mark.parametrize("kind", [Moved, Interrupted, Retrying, Resumed, Finished])
async def test_no_frame_is_lost_where_a_listener_raises(
    kind: type[Event], pair: Pair, trust: Trust
) -> None:
    raises = Raises(kind)
    async with (
        serving(pair, slowly) as peer,
        open_stream(
            peer.url(), transport="quic", trust=trust, memory=PathStore(), on_event=raises
        ) as stream,
    ):
        heard, raised = await hear(stream)
    assert heard == list(range(COUNT))
    assert raised == [kind.__name__]


@pytest.mark.parametrize("kind", [TransportChosen, FormatAnnounced])
async def test_what_a_listener_raises_at_the_opening_ends_it(
    kind: type[Event], pair: Pair, trust: Trust
) -> None:
    async with serving(pair, slowly) as peer:
        with pytest.raises(BoomError):
            async with open_stream(
                peer.url(), trust=trust, memory=PathStore(), on_event=Raises(kind)
            ):
                raise AssertionError("it was opened")


async def silent(asked: Asked, out: Out) -> None:
    await out.head(tenuto_session="s-1")
    await out.send(records(Format(AUDIO, 0), *frames(2)))
    await asyncio.sleep(3600)


async def test_who_waits_for_a_frame_is_told_at_once_and_the_watch_goes_on(
    pair: Pair, trust: Trust
) -> None:
    raises = Raises(Suspected)
    soon = WatchPolicy(suspect=0.1, switch=0.3)
    async with serving(pair, silent) as peer:
        with pytest.raises(BoomError):
            async with open_stream(
                peer.url(),
                lead=0.2,
                trust=trust,
                memory=PathStore(),
                on_event=raises,
                watch=soon,
            ) as stream:
                for _ in range(2):
                    await anext(stream)
                began = asyncio.get_running_loop().time()
                with pytest.raises(BoomError):
                    await anext(stream)
                assert asyncio.get_running_loop().time() - began < 2.0
                async with asyncio.timeout(5):
                    while len(peer.asked) < 2:
                        await asyncio.sleep(0.01)
                stream._events.add(Suspected("tcp", 1.0))  # nobody asks for a frame any more
        assert raises.times == 2
