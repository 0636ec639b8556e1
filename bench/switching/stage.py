"""The product's server in one network, and listeners in others with paths between."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import sys
import time
import wave
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.lab.certificates import Certificates
from bench.lab.errors import LabFailedError
from bench.lab.listening.ask import HOST, PRODUCT_PORT
from bench.lab.programs import Program, our_argv
from bench.switching.account import Account, Told
from bench.switching.listener import Ask
from netem.drivers.tun import TunBed
from netem.kernel.interfaces import configure
from netem.kernel.namespaces import Namespace
from netem.profile import Profile
from tenuto.client import WATCH
from tenuto.policy import FIRST_COOL_DOWN

__all__ = ["Noise", "Seat", "Stage"]

_READY_WITHIN: Final = 30.0
_OVER_WITHIN: Final = 60.0
_DOORS: Final = 2
_RATE: Final = 16_000
_CLEAR: Final = Profile(name="clear")


@dataclass(frozen=True, slots=True)
class Noise:
    """A file of noise that the server plays."""

    name: str
    seconds: float
    pcm: bytes

    def is_whole(self, account: Account) -> bool:
        """Every byte of it came, and came once."""
        return account.complete and account.sha == hashlib.sha256(self.pcm).hexdigest()


class Seat:
    """A listener behind a path of its own; one flow at a time."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.number = number
        self._ca = stage.certificates.path(stage.certificates.ca)
        self._told: list[Told] = []
        self._record: Mapping[str, Any] | None = None
        self._news = asyncio.Event()
        self._failure: LabFailedError | None = None
        with contextlib.ExitStack() as undo:
            self.bed = undo.enter_context(TunBed(_CLEAR, 0, server=stage.network, localhost=True))
            self.program = Program(
                f"listener {number + 1}",
                our_argv("bench.switching.listener"),
                self.bed.client.namespace,
                [stage.certificates.ca],
            )
            undo.callback(self.program.close)
            self._undo = undo.pop_all()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.program.fileno(), self._read)

    async def ready(self) -> None:
        await self.until(lambda told: "ready" in told, _READY_WITHIN)

    def go(
        self,
        params: Mapping[str, str | int | float],
        *,
        transport: str = "auto",
        memory: str | None = None,
        cool_down: float = FIRST_COOL_DOWN,
        interval: float = WATCH.interval,
        counted: bool = False,
    ) -> None:
        """Begin a flow on the path as it is."""
        self._told, self._record = [], None
        ask = Ask(
            url=f"https://localhost:{PRODUCT_PORT}/v1/speak",
            ca=self._ca,
            params=params,
            transport=transport,
            memory=memory,
            cool_down=cool_down,
            interval=interval,
            counted=counted,
        )
        self.program.tell({"go": asdict(ask)})

    def do(self, name: str, **more: object) -> None:
        self.program.tell({"do": name, **more})

    async def until(self, wanted: Callable[[Told], bool], within: float) -> Told | None:
        """The first event so far, or from now on, of this kind; None where none comes in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while True:
                    for told in self._told:
                        if wanted(told):
                            return told
                    if self._record is not None:
                        return None
                    await self._news_come()
        return None

    async def nth(self, name: str, number: int, within: float) -> bool:
        """Whether the event has come so often in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while sum(told["event"] == name for told in self._told) < number:
                    if self._record is not None:
                        return False
                    await self._news_come()
                return True
        return False

    def change(self, profile: Profile, seed: int) -> float:
        """Other conditions from now on; the moment."""
        self.bed.change(profile, seed)
        return time.monotonic()

    async def first_frame(self, within: float = 20.0) -> Told:
        """Raises `LabFailedError`: without audio there is nothing to measure."""
        told = await self.until(lambda each: each["event"] == "first-frame", within)
        if told is None:
            account = await self.end()
            raise LabFailedError(f"{self.program.name} hears nothing: {account.trouble}")
        return told

    async def over(self, within: float = _OVER_WITHIN) -> Account:
        """The account of the flow, at its end or after so long."""
        deadline = time.monotonic() + within
        with contextlib.suppress(TimeoutError):
            while self._record is None:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await self._news_come()
        return await self.end()

    async def end(self) -> Account:
        """The same now."""
        if self._record is None:
            self.program.tell({"close": True})
        async with asyncio.timeout(_READY_WITHIN):
            while self._record is None:
                await self._news_come()
        return Account.from_json(self._record, [each for each in self._told if "event" in each])

    async def _news_come(self) -> None:
        if self._failure is not None:
            raise self._failure
        await self._news.wait()
        self._news.clear()
        if self._failure is not None:
            raise self._failure

    def _read(self) -> None:
        try:
            for answer in self.program.answers():
                if "record" in answer:
                    self._record = answer["record"]
                else:
                    self._told.append({"event": "", **answer})
        except LabFailedError as failure:
            self._loop.remove_reader(self.program.fileno())
            self._failure = failure
        self._news.set()

    def close(self) -> None:
        self._loop.remove_reader(self.program.fileno())
        self._undo.close()


class Stage:
    """A server, and up to `seats` listeners at once, which are made when they are needed."""

    def __init__(self, media: Path, seats: int) -> None:
        self._media = media
        self._free: list[Seat] = []
        self._made = 0
        self._room = asyncio.Semaphore(seats)
        with contextlib.ExitStack() as undo:
            self.network = Namespace.new()
            undo.callback(self.network.close)
            configure(self.network, ["link set dev lo up"])
            self.certificates = Certificates()
            undo.callback(self.certificates.close)
            pair = self.certificates
            options = ["--host", HOST, "--port", str(PRODUCT_PORT), "--log", "json"]
            options += ["--cert", pair.path(pair.certificate), "--key", pair.path(pair.key)]
            options += ["--test-sources", "--media", str(media)]
            self._server = Program(
                "the server",
                [sys.executable, "-P", "-m", "quicserver", *options],
                self.network,
                [pair.certificate, pair.key],
            )
            undo.callback(self._server.close)
            self._undo = undo.pop_all()

    async def ready(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while sum('"DoorOpened"' in line for line in self._server.words()) < _DOORS:
            self._server.check()
            if time.monotonic() > deadline:
                raise LabFailedError(f"the server is not up in {_READY_WITHIN:g} s")
            await asyncio.sleep(0.05)

    def noise(self, seconds: float, seed: int = 1) -> Noise:
        """A file of it, for `file=`."""
        name = f"noise-{seconds:g}-{seed}.wav"
        pcm = random.Random(seed).randbytes(round(seconds * _RATE) * 2)
        if not (self._media / name).exists():
            with wave.open(str(self._media / name), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(_RATE)
                file.writeframes(pcm)
        return Noise(name, seconds, pcm)

    @asynccontextmanager
    async def seat(self, profile: Profile, seed: int, *, more: bool = False) -> AsyncIterator[Seat]:
        """A listener to itself, on a path that begins; with `more` beside the number of seats."""
        async with contextlib.nullcontext() if more else self._room:
            seat = self._free.pop() if self._free else await self._make()
            seat.bed.restart(profile, seed)
            try:
                yield seat
            finally:
                seat.bed.restart(_CLEAR, 0)
                self._free.append(seat)

    async def _make(self) -> Seat:
        seat = Seat(self, self._made)
        self._made += 1
        self._undo.callback(seat.close)
        await seat.ready()
        return seat

    def close(self) -> None:
        self._undo.close()
