"""A server's life as the operator steers it: signals, in what order, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from quicserver.app import Server
from quicserver.handover import Estate, check_successor
from quicserver.lastresort import BEYOND_GRACE, LastResort
from tenuto.telemetry.events import Event, RestartRefused

__all__ = ["run"]

T = TypeVar("T")

_ENDING = (signal.SIGTERM, signal.SIGINT)
_RESTARTING: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none.


async def run(
    server: Server,
    *,
    on_event: Callable[[Event], None],
    end: Callable[[Estate | None], None],
    successor: bool = False,
) -> Estate | None:
    """Start, and serve until a signal; then what a successor goes on with, or None for the end.

    SIGTERM and SIGINT drain, a second one ends the grace at once. SIGHUP restarts in place if
    the successor would start; while draining it means nothing. `successor`
    says that this process has been restarted: signals were held back for it. `end` is called
    from another thread where this loop hangs and has not come to an end in time.
    """
    life = _Life(server.settings.grace, end, successor)
    if await _started(server, life.signals):
        await _serve(server, life, on_event)
    life.signals.close(restarting=life.estate is not None)
    return life.estate


class _Life:
    """What is going on, for whoever has to end it from outside."""

    def __init__(self, grace: float, end: Callable[[Estate | None], None], successor: bool) -> None:
        self.estate: Estate | None = None
        """What the successor goes on with, once it is to be a restart."""
        self._grace = grace
        self._told_to_end = False
        self._last_resort = LastResort(lambda: end(None if self._told_to_end else self.estate))
        self.signals = _Signals(successor, self._end_in_time)

    def drains(self) -> None:
        """From now on there is the grace, and no more."""
        self._last_resort.within(self._grace + BEYOND_GRACE)

    def _end_in_time(self) -> None:
        """The grace runs from the first signal; the next one ends it."""
        self._last_resort.within((0.0 if self._told_to_end else self._grace) + BEYOND_GRACE)
        self._told_to_end = True


async def _started(server: Server, signals: _Signals) -> bool:
    """False where it was told to end before it was ready."""
    starting = asyncio.create_task(server.start())
    if await _first(starting, signals.told_to_end()):
        starting.result()
        return True
    starting.cancel()
    await asyncio.wait({starting})
    return False


async def _first(task: asyncio.Task[T], other: Coroutine[None, None, object]) -> bool:
    """Whether the task was done first; it goes on where it was not."""
    waiting = asyncio.create_task(other)
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return task.done()


async def _serve(server: Server, life: _Life, on_event: Callable[[Event], None]) -> None:
    signals = life.signals
    while life.estate is None:
        number = await signals.next()
        if number != _RESTARTING or signals.hung_up():
            break
        life.estate = await _prepared(server, signals, on_event)
    life.drains()
    closing = asyncio.create_task(server.stop(life.estate))
    while not closing.done():
        second = asyncio.create_task(signals.next())
        await asyncio.wait({closing, second}, return_when=asyncio.FIRST_COMPLETED)
        if not second.done():
            second.cancel()
        elif second.result() in _ENDING:
            if life.estate is None:
                closing.cancel()
                server.abort()
                break
            life.estate.close()  # It was to be a restart, and is to be the end.
            life.estate = None
    await asyncio.wait({closing})
    if not closing.cancelled():
        closing.result()


async def _prepared(
    server: Server, signals: _Signals, on_event: Callable[[Event], None]
) -> Estate | None:
    """What to hand over, or None where the successor would not start."""
    reason = server.why_not_restart()
    if not reason:
        checking = asyncio.create_task(check_successor())
        if await _first(checking, signals.told_to_end()):
            reason = checking.result()
        else:
            reason = "the server was told to end meanwhile"
            checking.cancel()
            await asyncio.wait({checking})
    if reason:
        on_event(RestartRefused(reason))
        return None
    return Estate(server.keep_sockets())


class _Signals:
    """Signals as a queue, for as long as the server runs.

    `on_end` is called at once for each that ends it, even where the loop hangs.
    """

    def __init__(self, successor: bool, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._came: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._told_to_end = asyncio.Event()
        self._restart_waits = False
        self._on_end = on_end
        self._terminal = os.isatty(2)
        self._handled = list(_ENDING)
        # Whoever started us by nohup wants no SIGHUP to be heard; a predecessor ignored it too.
        ignored = _RESTARTING and signal.getsignal(_RESTARTING) is signal.SIG_IGN
        if _RESTARTING is not None and (successor or not ignored):
            self._handled.append(_RESTARTING)
        for number in self._handled:
            # No handler of the loop's own: that one waits for the loop, which may hang.
            signal.signal(number, self._heard)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handled)

    async def next(self) -> signal.Signals:
        number = await self._came.get()
        if number == _RESTARTING:
            self._restart_waits = False
        return number

    async def told_to_end(self) -> None:
        """Until there is, or was, a signal that ends the server; `next` still gives it."""
        await self._told_to_end.wait()

    def _put(self, number: signal.Signals) -> None:
        """However many ask for a restart before it begins, there is one."""
        if number == _RESTARTING:
            if self._restart_waits:
                return
            self._restart_waits = True
        else:
            self._told_to_end.set()
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
            held_back = restarting and number in _ENDING
            signal.signal(number, _hold_back if held_back else signal.SIG_IGN)

    def _heard(self, number: int, frame: object) -> None:
        heard = signal.Signals(number)
        if heard in _ENDING:
            self._on_end()
        with contextlib.suppress(RuntimeError):  # The loop is closed: it has ended already.
            self._loop.call_soon_threadsafe(self._put, heard)


def _hold_back(number: int, frame: object) -> None:
    """Another thread was sent it, which does not block it: the main thread's outlast an `exec`."""
    signal.pthread_kill(threading.main_thread().ident or 0, number)
