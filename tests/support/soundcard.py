"""A sound card made by hand, in place of the module sounddevice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Card", "FakeSounddevice", "Heard"]


@dataclass
class Card:
    """What the system has. `takes` are the rates it can be opened with, its own by default."""

    rate: int = 48000
    channels: tuple[int, ...] = (1, 2)
    block: int = 256
    takes: tuple[int, ...] | None = None
    true_rate: int | None = None
    """How many samples a second it really takes."""
    latency: float = 0.03
    name: str = "card"
    refused: bool = False
    """It is there, but cannot be opened."""
    silent: bool = False
    """It opens, and never asks for anything."""
    underflows: set[int] = field(default_factory=set)
    """By the number of the call."""


@dataclass
class Heard:
    """What one opened stream was given, and how fast its card really played."""

    rate: int
    channels: int
    data: bytearray = field(default_factory=bytearray)
    closed: bool = False

    @property
    def samples(self) -> NDArray[np.int16]:
        return np.frombuffer(bytes(self.data), "<i2").reshape(-1, self.channels)


class FakeSounddevice(ModuleType):
    """Has one card or none. Without `clock` its streams are threads in real time.

    With one they are tasks of the running loop, whose time the clock tells.
    """

    class PortAudioError(Exception):
        pass

    class CallbackStop(Exception):  # noqa: N818 - the library's name
        pass

    class CallbackAbort(Exception):  # noqa: N818
        pass

    def __init__(self, card: Card | None = None, clock: Callable[[], float] | None = None) -> None:
        super().__init__("sounddevice")
        self.card = card
        self.heard: list[Heard] = []
        self.running: _Stream | None = None
        self.looks = 0
        self.host = "ALSA"
        self.virtual = clock is not None
        self.clock = clock or time.monotonic
        self.RawOutputStream = lambda **options: _Stream(self, **options)

    @property
    def samples(self) -> NDArray[np.int16]:
        """All that one card of one shape was given."""
        return np.concatenate([heard.samples for heard in self.heard])

    def replace(self, card: Card | None) -> None:
        """Pull out what is there, and put this in."""
        self.card = card
        if self.running is not None:
            self.running.vanish()

    def query_devices(self, kind: str) -> dict[str, Any]:
        if self.card is None:
            raise self.PortAudioError("Error querying device -1")
        return {
            "name": self.card.name,
            "default_samplerate": float(self.card.rate),
            "max_output_channels": max(self.card.channels),
            "default_high_output_latency": self.card.latency,
        }

    def query_hostapis(self) -> tuple[dict[str, Any], ...]:
        return ({"name": self.host},)

    def check_output_settings(self, channels: int, dtype: str, samplerate: int) -> None:
        card = self.card
        if card is None or channels not in card.channels:
            raise self.PortAudioError("Invalid number of channels [PaErrorCode -9998]")
        if samplerate not in (card.takes or (card.rate,)):
            raise self.PortAudioError("Invalid sample rate [PaErrorCode -9997]")

    def _terminate(self) -> None:
        assert "JACK" not in self.host, "aborts the process"
        self.looks += 1

    def _initialize(self) -> None:
        pass


class _Stream:
    def __init__(self, library: FakeSounddevice, **options: Any) -> None:
        card = library.card
        if card is None or card.refused:
            raise FakeSounddevice.PortAudioError("Device unavailable [PaErrorCode -9985]")
        library.check_output_settings(options["channels"], "int16", options["samplerate"])
        assert options["blocksize"] == 0
        self.library = library
        self.card = card
        self.options = options
        rate = card.true_rate or options["samplerate"]
        self.heard = Heard(rate, options["channels"])
        self.latency = card.latency
        self.calls = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._play)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.library.heard.append(self.heard)
        self.library.running = self
        if self.card.silent:
            return
        if self.library.virtual:
            self.task = asyncio.get_running_loop().create_task(self._play_virtually())
        else:
            self.thread.start()

    def vanish(self) -> None:
        self.stopped.set()
        if self.library.virtual:
            self.options["finished_callback"]()

    def abort(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.stopped.set()
        self.heard.closed = True
        if self.thread.ident is not None:
            self.thread.join()

    async def _play_virtually(self) -> None:
        due = self.library.clock()
        while not self.stopped.is_set() and self._call():
            due += self.card.block / self.heard.rate
            await asyncio.sleep(due - self.library.clock())
        if not self.stopped.is_set():  # what it still holds sounds before it says so
            await asyncio.sleep(self.latency)
            self.options["finished_callback"]()

    def _play(self) -> None:
        due = time.monotonic()
        while not self.stopped.is_set() and self._call():
            due += self.card.block / self.heard.rate
            time.sleep(max(0.0, due - time.monotonic()))
        self.options["finished_callback"]()

    def _call(self) -> bool:
        """One block; False after the last one."""
        size = self.card.block * self.heard.channels * 2
        block = bytearray(size)
        now = self.library.clock()
        moment = SimpleNamespace(currentTime=now, outputBufferDacTime=now + self.latency)
        status = SimpleNamespace(output_underflow=self.calls in self.card.underflows)
        self.calls += 1
        try:
            self.options["callback"](memoryview(block), self.card.block, moment, status)
        except FakeSounddevice.CallbackStop:
            return False
        except FakeSounddevice.CallbackAbort:
            return False
        finally:
            self.heard.data += block
        return True
