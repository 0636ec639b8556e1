"""A server's life as the operator steers it: signals, in what order, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable

from quicserver.app import Server
from quicserver.handover import check_successor
from tenuto.telemetry.events import Event, RestartRefused

__all__ = ["run"]

_ENDING = (signal.SIGTERM, signal.SIGINT)
_RESTARTING: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none.


async def run(
    server: Server, *, on_event: Callable[[Event], None], successor: bool = False
) -> list[socket.socket] | None:
    """Start, and serve until a signal; then the sockets of a restart, or None for the end.

    SIGTERM and SIGINT drain, a second one ends the grace at once. SIGHUP restarts in place if
    the successor would start; while draining it means nothing. `successor` says that this
    process has been restarted: signals were held back for it.
    """
    signals = _Signals(successor)
    await server.start()
    kept: list[socket.socket] | None = None
    while kept is None:
        number = await signals.next()
        if number != _RESTARTING or signals.hung_up():
            break
        kept = await _prepared(server, signals, on_event)
    closing = asyncio.create_task(server.stop())
    while not closing.done():
        second = asyncio.create_task(signals.next())
        await asyncio.wait({closing, second}, return_when=asyncio.FIRST_COMPLETED)
        if not second.done():
            second.cancel()
        elif second.result() in _ENDING:
            if kept is None:
                closing.cancel()
                server.abort()
                break
            for each in kept:  # It was to be a restart, and is to be the end.
                each.close()
            kept = None
    await asyncio.wait({closing})
    if not closing.cancelled():
        closing.result()
    signals.close(restarting=kept is not None)
    return kept


async def _prepared(
    server: Server, signals: _Signals, on_event: Callable[[Event], None]
) -> list[socket.socket] | None:
    """The sockets to keep, or None where the successor would not start."""
    reason = server.why_not_restart()
    if not reason:
        checking = asyncio.create_task(check_successor())
        ending = asyncio.create_task(signals.next_end())
        await asyncio.wait({checking, ending}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            reason = "the server was told to end meanwhile"
            signals.put(ending.result())
        else:
            reason = checking.result()
        for task in (checking, ending):
            task.cancel()
        await asyncio.wait({checking, ending})
    if reason:
        on_event(RestartRefused(reason))
        return None
    return server.keep_sockets()


class _Signals:
    """Signals as a queue, for as long as the server runs."""

    def __init__(self, successor: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._came: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._terminal = os.isatty(2)
        self._handled = list(_ENDING)
        # Whoever started us by nohup wants no SIGHUP to be heard; a predecessor ignored it too.
        ignored = _RESTARTING and signal.getsignal(_RESTARTING) is signal.SIG_IGN
        if _RESTARTING is not None and (successor or not ignored):
            self._handled.append(_RESTARTING)
        for number in self._handled:
            self._handle(number)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    async def next(self) -> signal.Signals:
        return await self._came.get()

    async def next_end(self) -> signal.Signals:
        """The next one that is no SIGHUP."""
        while (number := await self._came.get()) == _RESTARTING:
            pass
        return number

    def put(self, number: signal.Signals) -> None:
        self._came.put_nowait(number)

    def hung_up(self) -> bool:
        """Did the terminal go away that we were started on? Then nobody asked for a restart."""
        return self._terminal and not os.isatty(2)

    def close(self, *, restarting: bool) -> None:
        """What comes now comes too late to mean anything: the exit status stays 0.

        Unless a successor takes over, for which what ends a server is held back.
        """
        if restarting:
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        for number in self._handled:
            with contextlib.suppress(NotImplementedError):
                self._loop.remove_signal_handler(number)
            if restarting and number in _ENDING:
                continue
            signal.signal(number, signal.SIG_IGN)

    def _handle(self, number: signal.Signals) -> None:
        def heard(*_: object) -> None:
            self._loop.call_soon_threadsafe(self.put, number)

        try:
            self._loop.add_signal_handler(number, self.put, number)
        except NotImplementedError:  # On Windows.
            signal.signal(number, heard)
