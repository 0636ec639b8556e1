"""The loudspeaker: a player that the sound card's clock empties, whatever becomes of the card."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenuto.cli.aside import Aside, aside
from tenuto.cli.device import Device, open_device
from tenuto.cli.feed import Feed
from tenuto.cli.sinkevents import (
    BufferUnderrun,
    DeviceLost,
    DeviceOpened,
    DeviceUnderflow,
    SinkAccount,
    SinkEvent,
)
from tenuto.cli.soundlibrary import ELSEWHERE, OPENING, forget_at_exit, hanging, stderr_kept
from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tenuto.playout import Player, PlayoutMode

__all__ = ["Speaker"]

# Seconds held before the network has to wait: more than any lead but `max`.
_MOST = 32.0
_CAPACITY = 2 * round(_MOST / FRAME_DURATION)

# Seconds that the device itself holds, at least: our samples come from a thread of Python,
# which other threads and other processes hold up.
_LATENCY: dict[PlayoutMode, float] = {"gapless": 0.1, "live": 0.06}

_LOOK = 0.05
"""Seconds between two looks at the device, and between two at the room for frames."""
_SILENCE = 1.0
"""Seconds in which a device that plays asks for samples, or it hangs."""
_BLOCKS = 2.5
"""The same in blocks, where a device asks for much at once."""
_RECOVERY = 10.0
"""Seconds in which a lost device must be replaced by one that goes on."""
_RETRY = 0.5
_STEADY = 2.0
"""Seconds of audio after which a new device counts as one that goes on."""
_SLOW = 0.5
"""Seconds of a stream that a device may take to open without that a live listener skips them."""
_FAR_BEHIND = 1.0
"""Seconds of delay above its target at which a live listener leaves out what it missed: playing
faster would take it half a minute."""
_CLOSING = 1.0


@dataclass(frozen=True, slots=True)
class _Fault:
    reason: str
    rate: int | None = None
    """The stated rate, where it is the wrong one."""


class Speaker:
    """Plays on the default device, and on the next one where that goes or lies.

    The network inserts, the device's thread pulls from the `Feed` between them. `clock` is
    read by both, `beside` calls what may hang.
    """

    def __init__(
        self,
        audio: AudioFormat,
        *,
        mode: PlayoutMode = "gapless",
        drift: bool = True,
        on_event: Callable[[SinkEvent], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        beside: Aside = aside,
    ) -> None:
        self._beside = beside
        self._clock = clock
        self._on_event = on_event
        self._mode = mode
        player = Player(audio, mode=mode, drift=drift, capacity=_CAPACITY)
        self._feed = Feed(player, audio, clock)
        self._device: Device | None = None
        self._opened: DeviceOpened | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self._recover_by: float | None = None
        self._lied: set[int] = set()
        """Rates that a device stated and did not keep: each is answered once."""
        self._told_underflows = self._told_underruns = 0

    @property
    def buffered(self) -> float:
        return self._feed.buffered

    @property
    def account(self) -> SinkAccount:
        snapshot, made, left_out = self._feed.snapshot()
        return SinkAccount(
            playout=snapshot,
            made=made,
            left_out=left_out,
            device=self._opened,
            reopened=0 if self._opened is None else self._opened.count - 1,
            underflows=self._feed.underflows,
        )

    async def open(self) -> None:
        """Raises `OperatorError` where there is nothing to play on. Frames may come meanwhile."""
        await self._open()
        first = self._feed.first
        if first is not None and self._clock() - first > _SLOW:
            self._skip()
        self._watcher = asyncio.create_task(self._watch())

    @property
    def heard(self) -> int | None:
        """The last frame that was heard or is about to be; None before the first."""
        following = self._feed.next
        return None if not following else following - 1

    def flush(self, base: int) -> None:
        self._feed.flush(base)

    def pause(self, at: int) -> None:
        self._feed.pause(at)

    def resume(self) -> None:
        self._feed.resume()

    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None:
        while not self._feed.insert(frames, audio):
            await self._look()
        while self._feed.buffered > _MOST:
            await self._look()
        self._check()

    async def finish(self) -> None:
        """Wait until the last sample has sounded."""
        self._feed.finish()
        await self._over.wait()
        self._check()
        await self.abandon()

    async def abandon(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        self._tell()
        await self._close()

    async def _look(self) -> None:
        self._check()
        await asyncio.sleep(_LOOK)

    def _check(self) -> None:
        failure = self._failure or self._feed.failure
        if failure is not None:
            raise failure

    async def _watch(self) -> None:
        try:
            while not self._over.is_set():
                await asyncio.sleep(_LOOK)
                self._tell()
                if self._mode == "live" and self._feed.late(_FAR_BEHIND):
                    self._skip()
                fault = self._fault()
                if fault is not None:
                    await self._recover(fault)
        except Exception as error:  # noqa: BLE001 - `_check` raises it to who waits for us
            self._failure = error
            self._over.set()

    def _fault(self) -> _Fault | None:
        feed, device = self._feed, self._device
        quiet = self._clock() - feed.called
        patience = max(_SILENCE, _BLOCKS * feed.block)
        if device is None:
            return _Fault("it did not open again")
        if feed.ended or feed.failure is not None:
            # What the device still holds sounds meanwhile. One that hangs has had it all.
            if device.stopped or quiet > patience + 2 * device.shape.latency:
                self._over.set()
            return None
        if self._recover_by is not None and feed.taken > _STEADY:
            self._recover_by = None
        if device.stopped:
            return _Fault("it stopped by itself")
        if quiet > patience:
            return _Fault(f"it asked for nothing for {patience:.0f} s")
        stated, taken = device.shape.rate, feed.fault
        if taken is not None and stated not in self._lied:
            return _Fault(f"it takes {taken} samples a second, and says {stated}", stated)
        return None

    async def _recover(self, fault: _Fault) -> None:
        """Another device in place of this one; raises `OperatorError` where none comes."""
        name = "" if self._opened is None else self._opened.name
        self._on_event(DeviceLost(name, fault.reason))
        again = self._recover_by is not None
        if self._recover_by is None:
            self._recover_by = self._clock() + _RECOVERY
        if fault.rate is not None:
            self._lied.add(fault.rate)
        closed = await self._close()
        if again:
            await asyncio.sleep(_RETRY)
        while True:
            error: Exception
            try:
                if self._clock() < self._recover_by:
                    await self._open(anew=closed, own_rate=fault.rate is not None)
                    self._skip()
                    return
                error = OperatorError(fault.reason, remedy="")
            except (OperatorError, TimeoutError) as refusal:
                error = refusal
            if self._clock() + _RETRY > self._recover_by:
                raise OperatorError(
                    f"the loudspeaker was lost ({fault.reason}), and none was there for "
                    f"{_RECOVERY:.0f} s",
                    remedy=f"connect or choose one in the system's settings, {ELSEWHERE}",
                ) from error
            await asyncio.sleep(_RETRY)

    async def _open(self, *, anew: bool = False, own_rate: bool = False) -> None:
        wanted, feed = self._feed.audio, self._feed
        try:
            with stderr_kept():
                self._device = await self._beside(
                    lambda: open_device(
                        wanted, feed, latency=_LATENCY[self._mode], anew=anew, own_rate=own_rate
                    ),
                    OPENING,
                    late=lambda device: device.close(),
                )
        except TimeoutError:
            raise hanging() from None
        except asyncio.CancelledError:
            forget_at_exit()  # it goes on opening beside us
            raise
        shape = self._device.shape
        count = 1 if self._opened is None else self._opened.count + 1
        self._opened = DeviceOpened(shape.name, shape.rate, shape.channels, shape.latency, count)
        self._on_event(self._opened)

    async def _close(self) -> bool:
        """Whether it did: one that hangs is left behind."""
        device, self._device = self._device, None
        if device is None:
            return True
        try:
            await self._beside(device.close, _CLOSING)
        except TimeoutError:
            forget_at_exit()
            return False
        return True

    def _skip(self) -> None:
        """Time without a device is no reason for a live listener to be late from then on."""
        if self._mode == "live":
            self._feed.skip()

    def _tell(self) -> None:
        """Counts that moved since the last look; not one event for each of them."""
        underflows, underruns = self._feed.underflows, self._feed.underruns
        if underflows != self._told_underflows:
            self._told_underflows = underflows
            self._on_event(DeviceUnderflow(underflows))
        if underruns != self._told_underruns:
            self._told_underruns = underruns
            self._on_event(BufferUnderrun(underruns))
