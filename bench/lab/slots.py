"""A slot: one mode's listener behind a link of its own, for the whole run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.lab.errors import LabFailedError
from bench.lab.listening.ask import Ask
from bench.lab.listening.heard import Record
from bench.lab.modes import Mode
from bench.lab.programs import Program, our_argv
from bench.lab.record import Drop, Flow, Wire
from bench.lab.stage import Stage
from netem.catalogue import Catalogue
from netem.drivers.linkbed import LinkBed
from netem.drivers.report import BedTally, Drops
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.errors import ImpairmentError
from netem.link.tally import WayTally
from netem.profile import Profile
from tenuto.errors import OperatorError

__all__ = ["Heading", "Slot", "choose_driver"]

_PROGRAM: Final = "bench.lab.listening.program"

Driver = Callable[..., LinkBed]
_DRIVERS: Final[Mapping[str, Driver]] = {"tun": TunBed, "veth": VethBed}
"""The first that is possible here is taken. Never one that knows no seed, or no TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Which flow it is."""

    profile: str
    seed: int
    wave: int


class Slot:
    """`go` begins a flow; `take` is what became of it, once `program` has answered."""

    def __init__(self, mode: Mode, number: int, driver: str, stage: Stage) -> None:
        self.mode = mode
        self.number = number
        self._clear = Catalogue().load("clear")
        self._ca = stage.certificates.path(stage.certificates.ca)
        with contextlib.ExitStack() as undo:
            self.bed = undo.enter_context(
                _DRIVERS[driver](
                    self._clear,
                    0,
                    server=stage.network,
                    congestion=mode.congestion,
                    localhost=True,
                )
            )
            self.program = Program(
                f"{mode.name}, listener {number + 1}",
                our_argv(_PROGRAM, mode.listener),
                self.bed.client.namespace,
                [stage.certificates.ca],
            )
            undo.callback(self.program.close)
            self._undo = undo.pop_all()

    def go(self, frames: int, patience: float, on: tuple[Profile, int] | None) -> None:
        """Over a link of this profile and seed, from its beginning on; None: over a clear one."""
        profile, seed = on or (self._clear, 0)
        with self._in_mid_run():
            self.bed.restart(profile=profile, seed=seed)
        ask = Ask(frames=frames, ca=self._ca, patience=patience, options=self.mode.options)
        self.program.tell({"go": ask.as_json()})

    def take(self, told: dict[str, Any], heading: Heading) -> tuple[Flow, Record, BedTally]:
        """Of the answer `told`. Then the connection is closed, over a link that loses nothing."""
        record = Record.from_json(told)
        with self._in_mid_run():
            drops, tally = self.bed.drops(), self.bed.tally()
        self.let_go()
        return _flow(self.mode, heading, record, drops, tally), record, tally

    def let_go(self) -> None:
        with self._in_mid_run():
            self.bed.restart(profile=self._clear, seed=0)
        self.program.tell({"close": True})

    def check(self) -> None:
        with self._in_mid_run():
            self.bed.check()

    @contextlib.contextmanager
    def _in_mid_run(self) -> Iterator[None]:
        """What befalls a link that was there is no fault of the operator's."""
        try:
            yield
        except ImpairmentError as error:
            raise LabFailedError(f"the link of {self.program.name} is gone: {error}") from None

    def close(self) -> None:
        self._undo.close()


def _flow(mode: Mode, heading: Heading, record: Record, drops: Drops, tally: BedTally) -> Flow:
    # Without a frame all of it was the handshake's.
    start = time.monotonic() if record.first_due is None else record.first_due
    return Flow(
        mode=mode.name,
        profile=heading.profile,
        seed=heading.seed,
        wave=heading.wave,
        delays=record.delays,
        duplicates=record.duplicates,
        handshake=record.handshake,
        first_audio=record.first_audio,
        up=_wire(tally.path.up),
        down=_wire(tally.path.down),
        drops=_drops(drops, start),
        trouble=record.trouble,
    )


def _wire(way: WayTally) -> Wire:
    # What the gate held back never came to the link.
    passed = way.link.offered - way.link.dropped
    return Wire(packets=way.offered, size=way.size, dropped=way.offered - passed)


def _drops(drops: Drops, start: float) -> tuple[Drop, ...]:
    return tuple(
        Drop(at=drops.started + each.at - start, way=str(each.way.value), cause=each.cause)
        for each in drops.first
    )


def choose_driver(stage: Stage) -> str:
    """Try which bed can be made here. Raises `OperatorError` with the ways out."""
    reasons = []
    clear = Catalogue().load("clear")
    for name, driver in _DRIVERS.items():
        try:
            driver(clear, 0, server=stage.network, localhost=True).close()
        except ImpairmentError as error:
            reasons.append(f"{name}: {str(error).rstrip('.')}")
        else:
            return name
    raise OperatorError(
        f"no link can be made here ({'; '.join(reasons)})",
        remedy="python -m netem probe says what is possible, and the ways out",
    )
