"""From the player to the device: blocks of 20 ms in, what the device asks for out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from tenuto.cli.device import DeviceShape, no_resampler
from tenuto.cli.fifo import Fifo
from tenuto.cli.readahead import read_ahead
from tenuto.cli.sinkclock import RateMeter, SinkClock
from tenuto.cli.tally import LeftOut, Made, Tally
from tenuto.convert import Converter
from tenuto.errors import RemoteProtocolError, RequestError
from tenuto.media import AudioFormat, Frame
from tenuto.playout import Block, Player, PlayoutSnapshot

__all__ = ["Feed"]

_LATE = 0.2
"""Seconds above its target that a live listener may go on with: scaling takes 8 s for them."""

_MARGIN = 0.02
"""Seconds by which the device may be wrong about when its samples sound."""


class Feed:
    """Takes frames from the network's thread, gives samples to the device's: a `Listener`.

    `clock` is that of the frames' arrivals. What goes wrong within the device's thread is
    kept in `failure`, and the device is stopped.
    """

    def __init__(self, player: Player, audio: AudioFormat, clock: Callable[[], float]) -> None:
        self._player = player
        self._clock = clock
        self._lock = threading.Lock()
        self._announced = audio
        self._next = 0
        self._shape: DeviceShape | None = None
        self._converter: Converter | None = None
        self._source: AudioFormat | None = None
        self._fifo = Fifo()
        self._held = 0.0
        """Seconds of the stream that were read and not given to the device yet.

        In the fifo or in the resampling filter, which gives out nothing for a while and then
        much at once: the stream's time must not jump with it.
        """
        self._tally = Tally(audio)
        self._left_out = LeftOut()
        self._sink_clock = SinkClock()
        self._meter: RateMeter | None = None
        self._early = 0.0
        """How long before it sounds this device has a frame read, at most so far."""
        self._sounds = 0.0
        """When what is read next will; behind the end: when all has."""
        self._told: float | None = None
        """What the player will be told is the time at the next read, if that is soon."""
        self.first: float | None = None
        """When the first frame came."""
        self.called = clock()
        """When the device last asked."""
        self.taken = 0.0
        """Seconds of audio that the present device took."""
        self.block = 0.0
        """Seconds of audio for which the present device asks at once, at most so far."""
        self.ended = False
        """The device has been given the last sample."""
        self.underflows = 0
        self.failure: Exception | None = None

    @property
    def buffered(self) -> float:
        with self._lock:
            return self._player.buffered

    @property
    def audio(self) -> AudioFormat:
        """What is played now."""
        with self._lock:
            return self._player.audio

    @property
    def underruns(self) -> int:
        with self._lock:
            return self._player.counters.underruns

    @property
    def fault(self) -> int | None:
        """The rate at which the device takes samples, if it is not the one it states."""
        with self._lock:
            return None if self._meter is None else self._meter.fault

    def snapshot(self) -> tuple[PlayoutSnapshot, Made, LeftOut]:
        """What was left out is in none of the other counts."""
        with self._lock:
            snapshot = self._player.snapshot(self._present(self._clock()))
            made, left_out = self._tally.of(snapshot), replace(self._left_out)
        heard = snapshot.played - left_out.played, snapshot.concealed - left_out.concealed
        return replace(snapshot, played=heard[0], concealed=heard[1]), made, left_out

    def insert(self, frames: Sequence[Frame], audio: AudioFormat) -> bool:
        """Frames in order, all of this format; False if it must be tried again later.

        Raises `OperatorError` where the device plays another rate and none can be converted.
        """
        with self._lock:
            if audio != self._announced:
                self._check(audio)
                try:
                    self._player.change(frames[0].sequence, audio)
                except RemoteProtocolError:
                    return False  # too many changes are still to be played
                self._announced = audio
        now = self._clock()
        if self.first is None:
            self.first = now
        for frame in frames:
            with self._lock:
                self._player.insert(frame, now)
                self._next = max(self._next, frame.sequence + 1)
        return True

    def flush(self, base: int) -> None:
        """Drop what lies below frame `base` and is not on its way to the device."""
        with self._lock:
            self._player.flush(base)
            self._next = max(self._next, base)

    def pause(self, at: int) -> None:
        with self._lock:
            self._player.pause(at)

    def resume(self) -> None:
        with self._lock:
            self._player.resume()

    @property
    def next(self) -> int | None:
        """The frame whose turn is next: those below it are heard, or soon are."""
        with self._lock:
            return self._player.next

    def late(self, most: float) -> bool:
        """Whether playout is more than `most` seconds behind what the path asks for."""
        with self._lock:
            state = self._player.snapshot(self._present(self._clock()))
        return state.depth > 0 and state.delay > state.target + most

    def finish(self) -> None:
        with self._lock:
            self._player.finish(self._next)

    def attach(self, shape: DeviceShape) -> None:
        """Play on this device from now on, and first what another one did not take yet."""
        with self._lock:
            self._end_run()
            before, self._shape = self._shape, shape
            rest = self._fifo.take(len(self._fifo))
            if before is not None and rest:
                with suppress(RequestError):  # some 20 ms, that would be
                    again = Converter(before, shape)
                    self._fifo.push(again.push(rest) + again.finish())
            self._held = len(self._fifo) / _bytes_per_second(shape)
            self._sink_clock = SinkClock()
            self._early = 0.0
            self._told = None
            self._meter = RateMeter(shape.rate)
            self.called = self._clock()
            self.taken = self.block = 0.0

    def skip(self) -> None:
        """Leave out what a live listener would hear too late, after time without a device."""
        with self._lock:
            now = self._clock()
            state = before = self._player.snapshot(now)
            self._tally.change(before, self._player.audio)
            while state.depth and state.delay > state.target + _LATE:
                self._left_out.seconds += self._player.read(now).duration
                state = self._player.snapshot(now)
            self._tally.pass_over(state, self._player.audio)
            self._left_out.played += state.played - before.played
            self._left_out.concealed += state.concealed - before.concealed

    def pull(self, samples: int, ahead: float, underflow: bool) -> tuple[bytes, bool]:
        with self._lock:
            shape = self._shape
            if shape is None or self._meter is None:
                return b"", True
            size = samples * shape.bytes_per_sample
            now = self.called = self._clock()
            self.underflows += underflow
            self._meter.took(samples, now)
            try:
                self._fill(size, now, self._sink_clock.read(now + ahead), shape)
            except Exception as error:  # noqa: BLE001 - it is raised again where it can be answered
                self.failure = error
            self.block = max(self.block, samples / shape.rate)
            self._sink_clock.passed(samples / shape.rate)
            self.taken += samples / shape.rate
            data = self._fifo.take(size)
            self._held -= len(data) / _bytes_per_second(shape)  # silence is none of the stream
            # Silence until the last sample has sounded: asked to play out what it holds, a
            # device may drop it (PortAudio on ALSA's plug-in for PulseAudio does).
            out = self.ended and not self._fifo and now >= self._sounds + _MARGIN
            last = out or self.failure is not None
        return data.ljust(size, b"\0"), last

    def _present(self, now: float) -> float:
        """The player's time: that of the next read, however much is read at once."""
        if self._told is None:
            return now
        if self.ended:
            return self._told
        return self._told + max(0.0, now - self.called - self.block)

    def _check(self, audio: AudioFormat) -> None:
        """Here, where it can be answered, and not within the device's thread."""
        if self._shape is not None:
            try:
                Converter(audio, self._shape)
            except RequestError:
                raise no_resampler(audio.rate, self._shape.rate) from None

    def _fill(self, size: int, now: float, sounds: float, shape: DeviceShape) -> None:
        """Read on until the device has enough; what is held sounds from `sounds` on.

        The player is told of when a frame sounds less what the device needs at most: by then
        a frame must be there, whatever part of the device's block it is. Were it told of the
        sound itself, it would keep a delay that the device has used up before.
        """
        if not self._early:
            self._early = sounds - now + read_ahead(self._player.audio, shape, size)
        while len(self._fifo) < size and not self.ended:
            sound = sounds + self._held
            self._early = max(self._early, sound - now)
            block = self._read(sound - self._early)
            if block.ended:
                self._end_run()
                self.ended = True
            else:
                self._switch(block.audio, shape)
                assert self._converter is not None
                self._held += block.duration
                self._fifo.push(self._converter.push(block.samples.astype("<i2").tobytes()))
        if self._fifo:
            self._sounds = sounds + self._held
            self._told = self._sounds - self._early

    def _read(self, now: float) -> Block:
        block = self._player.read(now)
        if not self._tally.counts(block.audio):
            self._tally.change(self._player.snapshot(now), block.audio)
        return block

    def _switch(self, audio: AudioFormat, shape: DeviceShape) -> None:
        if audio == self._source:
            return
        self._end_run()
        try:
            self._converter, self._source = Converter(audio, shape), audio
        except RequestError:
            raise no_resampler(audio.rate, shape.rate) from None

    def _end_run(self) -> None:
        """What the filter still holds belongs before what comes next."""
        if self._converter is None or self._shape is None:
            return
        self._fifo.push(self._converter.finish())
        self._converter = self._source = None
        self._held = len(self._fifo) / _bytes_per_second(self._shape)


def _bytes_per_second(shape: DeviceShape) -> int:
    return shape.rate * shape.bytes_per_sample
