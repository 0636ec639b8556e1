"""Opening a stream: a race of QUIC and TCP, and patience with a server that is full for now."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Literal
from urllib.parse import quote

from tenuto.client.answers import retry_after
from tenuto.client.asking import Asking
from tenuto.client.changes import NetworkChanges
from tenuto.client.control import Controls
from tenuto.client.dialing import DEADLINES, Deadlines, Dialed, Dialer
from tenuto.client.events import Event, EventLog, Retrying
from tenuto.client.exchange import Timings, TransportChoice
from tenuto.client.flow import Flow
from tenuto.client.hurry import Hurry
from tenuto.client.paths import Paths
from tenuto.client.pathstore import PathStore, default_store
from tenuto.client.resuming import Resumer
from tenuto.client.stream import Stream
from tenuto.client.target import Address, Target, Value
from tenuto.client.trust import Trust
from tenuto.client.watch import WATCH
from tenuto.errors import ErrorCode, RequestError
from tenuto.policy import RetryPolicy, WatchPolicy

__all__ = ["RETRY", "WATCH", "open_stream", "session_url"]

RETRY = RetryPolicy()
"""A minute of attempts, at most 4 s apart."""

MOST_REFUSALS = 3
"""How often a first request is made again that was refused with a time to come back."""

LONGEST_REFUSAL = 5.0
"""Seconds that it waits for that; what takes longer is the caller's to decide."""


@asynccontextmanager
async def open_stream(
    url: str,
    *,
    transport: TransportChoice = "auto",
    params: Mapping[str, Value] | None = None,
    lead: float | Literal["max"] | None = None,
    listener: str | None = None,
    mode: Literal["gapless", "live"] | None = None,
    method: Literal["GET", "POST"] = "GET",
    token: str | None = None,
    resume: RetryPolicy | None = RETRY,
    watch: WatchPolicy | None = WATCH,
    trust: Trust | None = None,
    on_event: Callable[[Event], None] | None = None,
    memory: PathStore | None = None,
    follow_network: bool = True,
    deadlines: Deadlines = DEADLINES,
    addresses: Sequence[Address] | None = None,
) -> AsyncIterator[Stream]:
    """Ask for audio and yield a `Stream` whose format is known.

    `params` are the source's parameters (`text`, `lang`, ...) or a resume's (`from`,
    `epoch`); with POST they travel in the body, where no log sees them and no length is
    too much for a URL. `lead` is how many seconds ahead of real time the server may send,
    `"max"` unpaced. `mode` says what a listener wants that was away: all it missed, or the
    present. `token` goes into the `Authorization` of every request. `resume` is how the
    stream goes on where a connection is lost, None leaves that to the caller. `memory` is where
    it is kept which networks let no QUIC through: by default a file in the user's folder for
    state, `PathStore()` forgets it with the process. `follow_network` False stays where it is
    when the device changes its network. `addresses` are used instead of resolving the host.

    Raises `RequestError` for a refusal of the server (final on either transport), or a URL
    that is none; `ConnectError` where no transport got through; `OperatorError` for a CA
    file that cannot be read; `StreamCut` and `RemoteProtocolError` as the iteration does.
    The first connection is not retried; but it is made anew where the device changes its network
    meanwhile, and a server that lets nobody in for a moment, and says for how long, is waited for,
    unless `resume` is None.
    """
    target = Target.parse(url)
    log = EventLog(on_event)
    wishes = {"lead": lead, "listener": listener}
    given = {name: value for name, value in wishes.items() if value is not None}
    asking = Asking(target, method, {**(params or {}), **given}, token=token, mode=mode)
    started = asyncio.get_running_loop().time()
    paths = Paths(default_store() if memory is None else memory, target.origin)
    dialer = Dialer(trust or Trust(), deadlines, log, paths, addresses)
    refusals = 0 if resume is None else MOST_REFUSALS
    hurry = Hurry()

    def network_changed() -> None:
        hurry.ask()
        paths.network_changed()

    changes = NetworkChanges if follow_network else None
    with _watched(changes, network_changed):
        dialed = await _first(dialer, asking, transport, refusals, hurry)
    timings = Timings(connected=dialed.connected, response=dialed.responded)
    resumer = Resumer(dialer, asking, transport, resume or RETRY, log, random.random)
    flow = Flow(
        dialed,
        asking,
        resumer,
        log,
        timings,
        started,
        resuming=resume is not None,
        deadline=deadlines.response,
        watch=watch,
        paths=paths,
    )
    stream = Stream(flow, Controls(dialer, asking), log, paths, changes)
    try:
        await stream.prepare()
        yield stream
    finally:
        await stream.aclose()
    log.check()


async def _first(
    dialer: Dialer, asking: Asking, transport: TransportChoice, refusals: int, hurry: Hurry
) -> Dialed:
    async def dial() -> Dialed:
        """Anew where the device changes its network; one key makes it one session."""
        while (dialed := await hurry.unless(ask(), lambda dialed: dialed.leg.abort())) is None:
            pass
        return dialed

    def ask() -> Awaitable[Dialed]:
        return dialer.dial(asking.target, asking.first(), transport)

    for attempt in range(1, refusals + 1):
        try:
            return await dial()
        except RequestError as refusal:
            wait = retry_after(refusal.detail)
            if refusal.code is not ErrorCode.AT_CAPACITY or not 0 < wait <= LONGEST_REFUSAL:
                raise
        dialer.log.add(Retrying(attempt, wait))
        await asyncio.sleep(wait)
    return await dial()


@contextmanager
def _watched(changes: type[NetworkChanges] | None, on_change: Callable[[], None]) -> Iterator[None]:
    """The network that leads anywhere: the server's addresses are not known yet."""
    if changes is None:
        yield
        return
    watch = changes(on_change)
    watch.start()
    try:
        yield
    finally:
        watch.close()


def session_url(server: str, session: str) -> str:
    """The URL of a session's audio on the server at `server`."""
    return f"{server.rstrip('/')}/v1/sessions/{quote(session, safe='')}/audio"
