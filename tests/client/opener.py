"""Opens a stream from a peer that lives as long as the stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenuto.client import Event, RetryPolicy, Stream, Transport, Trust, open_stream
from tests.client.authority import Pair
from tests.client.peer import Peer, Script, serving


class Opener:
    """Opens a stream from a peer that plays `script` over the transport under test."""

    def __init__(self, pair: Pair, trust: Trust, transport: Transport) -> None:
        self._pair = pair
        self._trust = trust
        self._transport = transport
        self.events: list[Event] = []
        self.peer: Peer
        self.resume: RetryPolicy | None = None

    @asynccontextmanager
    async def __call__(
        self, script: Script, path: str = "/v1/speak?text=x"
    ) -> AsyncIterator[Stream]:
        async with (
            serving(self._pair, script) as self.peer,
            open_stream(
                self.peer.url(path=path),
                transport=self._transport,
                trust=self._trust,
                resume=self.resume,
                on_event=self.events.append,
            ) as stream,
        ):
            yield stream
