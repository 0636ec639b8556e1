"""Threads for calls that may never return: nobody waits for one that hangs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["DaemonExecutor", "DaemonPool"]

T = TypeVar("T")
P = ParamSpec("P")

# So many calls work at once: more would only compete with the event loop for the interpreter.
_AT_ONCE = 4

# Seconds after which a call is taken for one that waits rather than works: another may begin.
_SLOW = 0.01

# Seconds without a beginning and an end after which a pool whose threads are all at work hangs.
_STUCK = 1.0

_IDLE = 10.0
_MOST_DEFAULT = 64

_Call = Callable[[], object]


class DaemonPool:
    """At most `most` daemon threads, which the end of the process does not wait for.

    Calls begin in the order they came, four at a time; one that is slow is no longer
    counted, so that no other waits behind it, until all threads are taken. Calls must not
    raise. Every method may be called from any thread.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._begun: dict[int, float] = {}
        self._threads = 0
        self._moved = 0.0

    @property
    def busy(self) -> int:
        """Calls that have begun and not returned."""
        return len(self._begun)

    @property
    def waiting(self) -> int:
        """Calls that have not begun."""
        return len(self._waiting)

    @property
    def stuck(self) -> bool:
        """All threads hang: what is asked for now would wait for nobody knows how long."""
        return self.busy >= self._most and time.monotonic() - self._moved > _STUCK

    def submit(self, call: _Call) -> None:
        """Have it called; raises RuntimeError where the system gives not even one thread."""
        with self._changed:
            self._waiting.append(call)
            if self._has_spare():
                self._changed.notify()
                return
            try:
                self._add_thread()
            except RuntimeError:
                if not self._threads:
                    self._waiting.remove(call)
                    raise

    def withdraw(self, call: _Call) -> bool:
        """Forget it; False where it has begun."""
        with self._changed:
            try:
                self._waiting.remove(call)
            except ValueError:
                return False
            return True

    def _has_spare(self) -> bool:
        return self._threads > self.busy

    def _add_thread(self) -> None:
        if self._threads < self._most:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._threads += 1

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call()
            with self._changed:
                del self._begun[threading.get_ident()]
                self._moved = time.monotonic()

    def _next(self) -> _Call | None:
        with self._changed:
            idle_until = time.monotonic() + _IDLE
            while (now := time.monotonic()) < idle_until or self._waiting:
                if self._waiting and self._working(now) < _AT_ONCE:
                    return self._begin(now)
                # With calls waiting one thread at least looks whether those at work are slow.
                self._changed.wait(_SLOW if self._waiting else idle_until - now)
            self._threads -= 1
            return None

    def _begin(self, now: float) -> _Call:
        self._begun[threading.get_ident()] = self._moved = now
        if self._waiting and not self._has_spare():
            with contextlib.suppress(RuntimeError):  # Those that are there will come to it.
                self._add_thread()
        return self._waiting.popleft()

    def _working(self, now: float) -> int:
        return sum(1 for begun in self._begun.values() if now - begun < _SLOW)


class DaemonExecutor(ThreadPoolExecutor):
    """A loop's default executor whose end waits for nobody.

    Nothing of ours uses it; a library that resolves a name there must not keep us alive.
    """

    def __init__(self) -> None:
        super().__init__(1)  # It starts no thread before its own `submit`.
        self._pool = DaemonPool("default executor", _MOST_DEFAULT)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
                future.set_exception(error)

        self._pool.submit(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Returns at once, whatever is asked."""
