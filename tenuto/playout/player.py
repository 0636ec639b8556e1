"""From frames to samples: the jitter buffer's decisions, carried out so that nothing clicks."""

from __future__ import annotations

from bisect import insort
from dataclasses import asdict, dataclass
from typing import Literal, assert_never

import numpy as np

from tenuto.errors import RemoteProtocolError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tenuto.playout.concealment import Concealer, fade_in, fade_out
from tenuto.playout.jitter import JitterBuffer, PlayoutCounters, PlayoutMode
from tenuto.playout.outcome import Concealed, Ended, Paused, Played, Waiting
from tenuto.playout.pitch import Samples
from tenuto.playout.scale import SpliceBudget, splice
from tenuto.playout.snapshot import PlayerState, PlayoutSnapshot
from tenuto.playout.ticks import TICKS_PER_SECOND, ticks

__all__ = ["Block", "BlockKind", "Player"]

BlockKind = Literal["played", "concealed", "waiting", "ended"]
"""`concealed` is also how an old format ends, `waiting` how a wait does: 5 ms each."""

MAX_CHANGES = 16

# Parts of the time that scaling may take away or add, and over what stretch that holds. A low
# voice's period is 15 ms, all that a second of drift may have: hence two seconds for that.
_LIVE_SHARE, _LIVE_WINDOW = 0.025, 1.0
# So far above its target a listener is behind the talk: then twice as much may be left out.
_FAR, _FAR_SHARE = 0.060, 0.050
_DRIFT_SHARE, _DRIFT_WINDOW = 0.015, 2.0

_CONTEXT = 0.005


@dataclass(frozen=True, slots=True)
class Block:
    """What to play next: int16 of shape (samples, channels), about 20 ms of it.

    After a splice it is up to 15 ms shorter or longer; a seam has 5 ms; a short frame has its
    own length. `ended` comes with no samples, and so does every block after it.
    """

    samples: Samples
    audio: AudioFormat
    kind: BlockKind

    @property
    def ended(self) -> bool:
        return self.kind == "ended"

    @property
    def duration(self) -> float:
        return len(self.samples) / self.audio.rate


class Player:
    """Frames in by arrival, blocks of samples out by the sink's clock.

    Begins with frame `start`, or with the first that comes. `now` is in seconds, of one clock
    for all calls; for `read` it moves with the sink's clock: when the block will begin to sound,
    less what the sink reads ahead of its sound at most. `drift` lets mode `gapless` follow
    the sink's clock; without it every sample that came in time is played as it came.
    """

    def __init__(
        self,
        audio: AudioFormat,
        *,
        start: int | None = None,
        mode: PlayoutMode = "gapless",
        drift: bool = True,
        capacity: int = 2048,
    ) -> None:
        self._audio = audio
        self._mode: PlayoutMode = mode
        self._capacity = capacity
        self._drift = drift
        self._pause: int | None = None
        """Where the source pauses, if it was told before the first frame."""
        self._buffer = None if start is None else self._begin(start)
        self._changes: list[tuple[int, AudioFormat]] = []
        self._concealer = Concealer(audio)
        self._queued: Block | None = None
        live = mode == "live"
        self._share, window = (_LIVE_SHARE, _LIVE_WINDOW) if live else (_DRIFT_SHARE, _DRIFT_WINDOW)
        self._window = ticks(window)
        self._budget = SpliceBudget(self._window)
        self._state: PlayerState = "filling"
        self._waited = False
        self._fresh = False
        """The next frame follows a silence that nobody expected."""
        self._concealed = self._shrunk = self._stretched = 0
        self._off = 0
        """Samples played since scaling was last not called for."""

    @property
    def audio(self) -> AudioFormat:
        """The format of the frame played last."""
        return self._audio

    @property
    def buffered(self) -> float:
        """Seconds of audio from the next frame to play to the newest."""
        return 0.0 if self._buffer is None else self._buffer.depth * FRAME_DURATION

    @property
    def next(self) -> int | None:
        """The frame whose turn is next; None before the first came."""
        return None if self._buffer is None else self._buffer.next

    @property
    def target(self) -> float:
        """Seconds that a frame should wait before it is played."""
        return 0.0 if self._buffer is None else self._buffer.target

    def delay(self, now: float) -> float:
        """How long after the quickest of late a frame read at `now` is played."""
        return 0.0 if self._buffer is None else self._buffer.delay(now)

    @property
    def counters(self) -> PlayoutCounters:
        """Those of the buffer; not to be changed."""
        return PlayoutCounters() if self._buffer is None else self._buffer.counters

    def insert(self, frame: Frame, now: float) -> bool:
        """Take a frame in; False if it was late, a duplicate or beyond the capacity."""
        if self._buffer is None:
            self._buffer = self._begin(frame.sequence)
        return self._buffer.insert(frame, now)

    def change(self, sequence: int, audio: AudioFormat) -> None:
        """From this frame on the samples are of another format.

        Raises `RemoteProtocolError` where more than `MAX_CHANGES` are still to come.
        """
        changes = [change for change in self._changes if change[0] != sequence]
        if len(changes) >= MAX_CHANGES:
            raise RemoteProtocolError(
                f"the format changes more than {MAX_CHANGES} times ahead of what is played"
            )
        insort(changes, (sequence, audio), key=lambda change: change[0])
        self._changes = changes

    def finish(self, end: int) -> None:
        """No frame from `end` on will ever exist: what is held may play out at once."""
        if self._buffer is None:
            self._buffer = self._begin(end)
        self._buffer.finish(end)

    def pause(self, at: int) -> None:
        """The source pauses before frame `at`: to run out there is no underrun.

        What sounds ends there within 5 ms, and what follows begins like the first frame of all.
        Frames before `at` may still come.
        """
        if self._buffer is None:
            self._pause = at
        else:
            self._buffer.pause(at)

    def resume(self) -> None:
        """The source goes on: frames are due."""
        self._pause = None
        if self._buffer is not None:
            self._buffer.resume()

    def flush(self, base: int) -> None:
        """Play nothing below frame `base` any more: what is held of it is dropped.

        What sounds ends within 5 ms, and what follows begins like the first frame of all.
        """
        if self._buffer is None:
            self._buffer = self._begin(base)
        if base <= self._buffer.next:
            return
        self._buffer.flush(base)
        audio = self._audio
        while self._changes and self._changes[0][0] <= base:
            audio = self._changes.pop(0)[1]
        self._queued = self._stop()
        if audio != self._audio:
            insort(self._changes, (base, audio), key=lambda change: change[0])

    def read(self, now: float) -> Block:
        """What to play from `now` on."""
        block = self._queued
        self._queued = None
        if block is None:
            block = self._next(now)
        self._budget.passed(len(block.samples) * TICKS_PER_SECOND // block.audio.rate)
        return block

    def snapshot(self, now: float, *, histogram: bool = False) -> PlayoutSnapshot:
        buffer = self._begin(0) if self._buffer is None else self._buffer
        counters = asdict(buffer.counters)
        counters["waited"] = buffer.counters.waited * FRAME_DURATION
        return PlayoutSnapshot(
            now=now,
            mode=self._mode,
            state=self._state,
            delay=buffer.delay(now),
            target=buffer.target,
            base=buffer.base,
            quantile=buffer.quantile,
            depth=buffer.depth,
            concealed_samples=self._concealed,
            shrunk_samples=self._shrunk,
            stretched_samples=self._stretched,
            histogram=buffer.histogram() if histogram else None,
            **counters,
        )

    def _begin(self, start: int) -> JitterBuffer:
        buffer = JitterBuffer(start, mode=self._mode, drift=self._drift, capacity=self._capacity)
        if self._pause is not None:
            buffer.pause(self._pause)
        return buffer

    def _next(self, now: float) -> Block:
        buffer = self._buffer
        if buffer is None:
            return self._wait()
        excess = buffer.excess(now)
        outcome = buffer.pull(now)
        match outcome:
            case Played(frame):
                return self._play(frame, excess)
            case Concealed():
                self._state, self._waited = "playing", False
                return self._conceal("concealed")
            case Waiting():
                return self._wait()
            case Paused():
                return self._rest()
            case Ended():
                return self._end()
            case _:
                assert_never(outcome)

    def _wait(self) -> Block:
        if self._state == "filling":
            return self._silence()
        self._state, self._waited = "waiting", True
        return self._conceal("waiting")

    def _rest(self) -> Block:
        tail = None if self._state == "filling" else self._stop()
        return self._silence() if tail is None else tail

    def _silence(self) -> Block:
        silence = np.zeros((self._audio.samples_per_frame, self._audio.channels), np.int16)
        return self._block(silence, "waiting")

    def _conceal(self, kind: BlockKind) -> Block:
        samples = self._concealer.conceal(self._audio.samples_per_frame)
        self._concealed += len(samples)
        return self._block(samples, kind)

    def _end(self) -> Block:
        self._state = "ended"
        if self._concealer.active and not self._concealer.quiet:
            return self._block(self._concealer.fade_out(), "concealed")
        return self._block(np.zeros((0, self._audio.channels), np.int16), "ended")

    def _stop(self) -> Block | None:
        """Begin again like the first frame of all; how the present sound ends, if there is one."""
        tail = self._ending()
        self._concealer = Concealer(self._audio)
        self._state, self._waited, self._fresh = "filling", False, True
        self._off = 0
        return tail

    def _ending(self) -> Block | None:
        """5 ms that lead from what sounds now to silence, where it is not there already."""
        if self._queued is not None:
            # It was counted as heard when it was made, and will not be.
            length = max(1, round(_CONTEXT * self._queued.audio.rate))
            return self._block(fade_out(self._queued.samples[:length]), "concealed")
        if self._state in ("filling", "ended") or self._concealer.quiet:
            return None
        return self._block(self._concealer.fade_out(), "concealed")

    def _play(self, frame: Frame, excess: float) -> Block:
        self._state = "playing"
        waited, self._waited = self._waited, False
        tail = self._change_format(frame.sequence)
        samples = _decoded(frame, self._audio)
        fresh, self._fresh = self._fresh, False
        if tail is not None or fresh:
            samples = fade_in(samples, self._audio.rate)
        elif self._concealer.active:
            if waited:
                tail = self._block(self._concealer.bridge(samples), "waiting")
            else:
                samples = self._concealer.recover(samples)
        elif excess and len(samples) == self._audio.samples_per_frame:
            samples = self._scaled(samples, excess)
        self._off = self._off + len(samples) if excess else 0
        self._concealer.heard(samples)
        block = self._block(samples, "played")
        if tail is None or not len(tail.samples):
            return block
        self._queued = block
        return tail

    def _change_format(self, sequence: int) -> Block | None:
        """Take over the format of this frame; how the old one ends, if it changes."""
        audio = self._audio
        while self._changes and self._changes[0][0] <= sequence:
            audio = self._changes.pop(0)[1]
        if audio == self._audio:
            return None
        quiet = self._concealer.quiet
        samples = self._concealer.fade_out()
        tail = self._block(samples[:0] if quiet else samples, "concealed")
        self._audio = audio
        self._concealer = Concealer(audio)
        return tail

    def _scaled(self, samples: Samples, excess: float) -> Samples:
        rate = self._audio.rate
        far = self._mode == "live" and excess > _FAR
        most = round((_FAR_SHARE if far else self._share) * self._window)
        room = self._budget.room(most) * rate // TICKS_PER_SECOND
        before = self._concealer.history(round(_CONTEXT * rate))
        spliced = splice(before, samples, rate, excess, room, self._off / rate)
        if spliced is None:
            return samples
        gained = len(spliced) - len(samples)
        self._budget.spend(ticks(abs(gained) / rate))
        self._shrunk += max(0, -gained)
        self._stretched += max(0, gained)
        return spliced

    def _block(self, samples: Samples, kind: BlockKind) -> Block:
        return Block(samples, self._audio, kind)


def _decoded(frame: Frame, audio: AudioFormat) -> Samples:
    """The frame's whole samples."""
    whole = min(len(frame.payload) // audio.bytes_per_sample, frame.samples)
    values = np.frombuffer(frame.payload, "<i2", whole * audio.channels)
    return values.astype(np.int16, copy=False).reshape(whole, audio.channels)
