"""The loudspeaker: a jitter buffer that the sound card's clock empties."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any, assert_never

from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Outcome, Played, Waiting

__all__ = ["Speaker", "load_sounddevice"]

# Seconds held before the network has to wait: more than any lead but `max`.
_MOST = 32.0
_CAPACITY = 2 * round(_MOST / FRAME_DURATION)

_ELSEWHERE = "or write a file with --output speech.wav"


def load_sounddevice() -> Any:
    """The library, or an `OperatorError` that says how to get it."""
    try:
        import sounddevice
    except ImportError:
        raise OperatorError(
            "no library to play sound with",
            remedy=f"pip install 'tenuto[speaker]', {_ELSEWHERE}",
        ) from None
    except OSError:
        raise OperatorError(
            "sounddevice finds no PortAudio on this machine",
            remedy=f"install it (Debian: apt install libportaudio2), {_ELSEWHERE}",
        ) from None
    return sounddevice


class Speaker:
    """Plays on the default device. The network inserts, the device's thread pulls."""

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._buffer: JitterBuffer | None = None
        self._next = 0
        self._room = asyncio.Event()
        self._played = asyncio.Event()
        self._sounddevice = load_sounddevice()
        try:
            self._device = self._sounddevice.RawOutputStream(
                samplerate=audio.rate,
                channels=audio.channels,
                dtype="int16",
                blocksize=audio.samples_per_frame,
                callback=self._pull,
                finished_callback=self._finished,
            )
            self._device.start()
        except self._sounddevice.PortAudioError as error:
            raise OperatorError(
                f"no loudspeaker for {audio.rate} Hz and {audio.channels} channels: {error}",
                remedy=f"connect or choose one in the system's settings, {_ELSEWHERE}",
            ) from None

    @property
    def buffered(self) -> float:
        with self._lock:
            return 0.0 if self._buffer is None else self._buffer.depth * FRAME_DURATION

    async def write(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            with self._lock:
                if self._buffer is None:
                    self._buffer = JitterBuffer(frame.sequence, capacity=_CAPACITY)
                self._buffer.insert(frame, time.monotonic())
                self._next = max(self._next, frame.sequence + 1)
        while self.buffered > _MOST and not self._played.is_set():
            self._room.clear()
            await self._room.wait()

    async def finish(self) -> None:
        """Wait until the last sample has sounded."""
        with self._lock:
            if self._buffer is None:
                self._buffer = JitterBuffer(self._next)
            self._buffer.finish(self._next)
        await self._played.wait()
        self._device.close()

    async def abandon(self) -> None:
        self._device.abort()
        self._device.close()

    def _pull(self, out: Any, samples: int, clock: Any, status: Any) -> None:
        """Called by the device's thread for each block of 20 ms."""
        with self._lock:
            outcome: Outcome = (
                Waiting() if self._buffer is None else self._buffer.pull(time.monotonic())
            )
        match outcome:
            case Played(frame):
                out[:] = frame.payload.ljust(len(out), b"\0")
            case Concealed() | Waiting():
                out[:] = bytes(len(out))
            case Ended():
                out[:] = bytes(len(out))
                raise self._sounddevice.CallbackStop
            case _:
                assert_never(outcome)
        self._loop.call_soon_threadsafe(self._room.set)

    def _finished(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._played.set()
        self._room.set()
