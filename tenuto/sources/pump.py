"""A thread that reads one descriptor, so that neither the loop nor the process waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tenuto.errors import RequestError, SourceError, TenutoError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.pace import PaceCheck
from tenuto.sources.wav_stream import Run, SampleStream

__all__ = ["LIVE_SECONDS", "READ_AHEAD", "RUN_FRAMES", "Pump", "PumpTally"]

READ_AHEAD = 64 * 1024
"""Bytes held for a listener who can be waited for, as they came and as they are heard; then
the writer waits.
"""

LIVE_SECONDS = 1
"""Of audio, held for one who cannot; then the oldest is dropped."""

RUN_FRAMES = 5
"""In one run: what a session takes at a time, and may lose when it ends."""

_READ_SIZE = 4096


@dataclass(slots=True)
class PumpTally:
    """Counters since the start of the process; sizes in bytes."""

    read_bytes: int = 0
    skipped_bytes: int = 0
    """Live audio that came while nobody had a session of it."""
    dropped_bytes: int = 0
    """Live audio that a session did not take in time."""
    off_pace: int = 0
    """Sessions whose audio came at another rate than announced."""


class Pump:
    """Reads `descriptor` from `start` on and hands its runs over, one taker at a time.

    `taker` is whoever may take; a new one may replace it, and the old one is told that
    there is no more. `on_off_pace` gets the announced and the measured rate, on the loop.
    """

    def __init__(
        self,
        descriptor: int,
        stream: SampleStream,
        *,
        live: bool,
        on_off_pace: Callable[[int, float], None] = lambda announced, measured: None,
    ) -> None:
        self.tally = PumpTally()
        self.failure: TenutoError | None = None
        self.taker: object = None
        self.refusal: RequestError | None = None
        self._descriptor = descriptor
        self._stream = stream
        self._live = live
        self._on_off_pace = on_off_pace
        self._pace: PaceCheck | None = None
        self._runs: deque[Run] = deque()
        self._held = 0
        self._over = False
        self._lock = threading.Condition()
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """A daemon: the process ends while it waits for a byte."""
        threading.Thread(target=self._run, name="standard input", daemon=True).start()

    @property
    def format(self) -> AudioFormat | None:
        """That of the next byte to be taken; None before the first header."""
        with self._lock:
            return self._runs[0][0] if self._runs else self._stream.format

    @property
    def over(self) -> bool:
        """All has been read and taken."""
        with self._lock:
            return self._over and not self._runs

    @property
    def held(self) -> int:
        """Bytes of audio that wait to be taken."""
        return self._held

    async def begun(self) -> None:
        """Wait until the format is known, or never will be; raises the refusal."""
        while self.format is None and not self.over:
            if self.refusal is not None:
                raise self.refusal
            await self._wait()

    def refuse(self, refusal: RequestError) -> None:
        """Whoever waits for the format, now or later, is told this instead."""
        self.refusal = refusal
        self._changed.set()

    def begin(self, taker: object) -> None:
        """From now on this one takes."""
        with self._lock:
            self.taker = taker
            self._pace = PaceCheck() if self._live else None
        self._changed.set()

    def end(self, taker: object, back: Run | None = None) -> None:
        """It takes no more, and gives the last run back where it had no use for it.

        What a live pump holds for it is of no use to the next.
        """
        with self._lock:
            if self.taker is not taker:
                return
            self.taker = None
            if back is not None:
                self._runs.appendleft(back)
                self._held += len(back[1])
            if self._live:
                self._pace = None
                self.tally.skipped_bytes += self._held
                self._runs.clear()
                self._held = 0

    async def take(self, taker: object) -> Run | None:
        """The next run; None at the end, and for one who was replaced."""
        while True:
            with self._lock:
                if self.taker is not taker:
                    return None
                if self._runs:
                    run = self._runs.popleft()
                    self._held -= len(run[1])
                    self._lock.notify()
                    return run
                if self._over:
                    break
            await self._wait()
        if self.failure is not None:
            raise SourceError(self.failure.message, remedy=self.failure.remedy)
        return None

    async def _wait(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # The thread

    def _run(self) -> None:
        try:
            while data := self._read(self._room()):
                self._take_in(data)
                self._tell()
            for run in self._stream.finish():
                self._keep(run)
        except TenutoError as error:
            self.failure = error
        except OSError as error:
            self.failure = SourceError(
                f"standard input cannot be read: {error.strerror}",
                remedy="start the server anew with something on its standard input",
            )
        with self._lock:
            self._over = True
        self._tell()
        if self._live and self.failure is not None:
            self._drain()

    def _drain(self) -> None:
        """A live writer is never made to wait, whatever it writes."""
        with contextlib.suppress(OSError):
            while data := self._read(_READ_SIZE):
                self.tally.skipped_bytes += len(data)

    def _room(self) -> int:
        if self._live:
            return _READ_SIZE
        with self._lock:
            self._lock.wait_for(lambda: self._held < READ_AHEAD)
            return min(READ_AHEAD - self._held, _READ_SIZE)

    def _read(self, size: int) -> bytes:
        while True:
            try:
                data = os.read(self._descriptor, size)
            except BlockingIOError:
                # Whoever shares the pipe has set it so; it must stay as it is.
                select.select([self._descriptor], [], [])
            else:
                self.tally.read_bytes += len(data)
                return data

    def _take_in(self, data: bytes) -> None:
        format, samples = None, 0
        for run in self._stream.push(data):
            self._keep(run)
            samples = (samples if run[0] == format else 0) + len(run[1]) // run[0].bytes_per_sample
            format = run[0]
        if format is not None:
            self._check_pace(format, samples)

    def _keep(self, run: Run) -> None:
        format, samples = run
        most = min(RUN_FRAMES, MAX_RUN_SIZE // format.frame_size) * format.frame_size
        for first in range(0, len(samples), most):
            self._hold(format, samples[first : first + most])

    def _hold(self, format: AudioFormat, samples: bytes) -> None:
        with self._lock:
            if self._live and self.taker is None:
                self.tally.skipped_bytes += len(samples)
                return
            if not self._live and self._held + len(samples) > READ_AHEAD:
                self._tell()  # Else who waits for what is held already would wait for ever.
                self._lock.wait_for(lambda: self._held + len(samples) <= READ_AHEAD)
            self._runs.append((format, samples))
            self._held += len(samples)
            while self._live and self._held > LIVE_SECONDS * format.bytes_per_second:
                dropped = len(self._runs.popleft()[1])
                self._held -= dropped
                self.tally.dropped_bytes += dropped

    def _check_pace(self, format: AudioFormat, samples: int) -> None:
        with self._lock:
            if self._pace is None:
                return
            measured = self._pace.delivered(samples, format.rate, time.monotonic())
            if measured is None:
                return
            self._pace = None  # Once per session.
            self.tally.off_pace += 1
        self._call(partial(self._on_off_pace, format.rate, measured))

    def _tell(self) -> None:
        self._call(self._changed.set)

    def _call(self, function: Callable[[], object]) -> None:
        # The loop is closed where the process is about to end.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)
