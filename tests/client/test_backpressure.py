"""A reader that does not read: the server stops, nothing grows, nothing is lost."""

from __future__ import annotations

import asyncio

from tenuto.media import AudioFormat
from tenuto.wire import Format
from tests.client.opener import Opener
from tests.client.peer import Asked, Out, frames, records, sentence


async def test_a_reader_that_does_not_read_stops_the_server(opened: Opener) -> None:
    """50 MB offered, none taken: what is held here and under way stays bounded."""
    audio = AudioFormat(48000, 2)
    total = 50_000_000

    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(records(Format(audio, 0)))
        for start in range(0, total // audio.frame_size, 10):
            await out.send(records(*frames(10, start, audio)))

    async with opened(script) as stream:
        out = opened.peer.outs[0]
        before = -1
        while out.sent != before:
            before = out.sent
            await asyncio.sleep(0.25)
        assert stream.buffered <= 256 * 1024
        assert before < 12_000_000
        for _ in range(400):
            await anext(stream)
        await asyncio.sleep(0.1)
        assert out.sent > before or stream.transport == "tcp"


async def test_a_slow_reader_loses_nothing(opened: Opener) -> None:
    count = 4000
    body = sentence(count)

    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        for offset in range(0, len(body), 30_000):
            await out.send(body[offset : offset + 30_000])
        await out.end()

    async with opened(script) as stream:
        came = []
        async for frame in stream:
            came.append(frame)
            if len(came) % 500 == 0:
                await asyncio.sleep(0.02)
        assert came == frames(count)
