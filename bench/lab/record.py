"""What the lab measured, as values that travel as JSON: the only thing a report is made from.

Times are seconds, sizes bytes of whole IP packets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from bench.lab.reading import UnfitError, read
from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION

__all__ = [
    "FORMAT",
    "MOST_FRAMES",
    "Drop",
    "Flow",
    "Machine",
    "ModeNote",
    "ProfileNote",
    "Results",
    "Setting",
    "Wave",
    "Wire",
    "unreadable",
]

FORMAT: Final = 1

MOST_FRAMES: Final = 5_000_000
"""Of all flows of a run: all of them are in memory, half a gigabyte."""

_MOST_READ: Final = 2 * MOST_FRAMES
"""At worst every wave was run twice."""
_MOST_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A packet of the flow that the link did not hand on."""

    at: float
    """After frame 0 was due; before that it was the handshake's."""
    way: str
    """`up` or `down`."""
    cause: str
    """By its name in the link's tally: lost, faded, blacked_out, queue_dropped, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What one direction of the link was offered by the flow, and what of it was dropped."""

    packets: int = 0
    size: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One listener of one mode over one link."""

    mode: str
    profile: str
    seed: int
    wave: int
    """The number of its wave in `Results.waves`."""
    delays: tuple[float | None, ...] = ()
    """For each frame of the schedule, from when it was due at the sender to its arrival; None
    for one that had not come when the flow was ended.
    """
    duplicates: int = 0
    """Frames that came again."""
    handshake: float | None = None
    """From the first packet to a connection that takes a request; None: it never came to be."""
    first_audio: float | None = None
    """From the first packet to the first frame."""
    up: Wire = field(default_factory=Wire)
    down: Wire = field(default_factory=Wire)
    drops: tuple[Drop, ...] = ()
    """The first ones, as many as the emulator notes."""
    trouble: str | None = None
    """Why it ended before its schedule did, if so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """How true the machinery was to its task while a wave ran: the worst of its links."""

    emulator_p99: float = 0.0
    """Lateness of a packet behind its due time."""
    emulator_max: float = 0.0
    behind: float = 0.0
    """How long a packet may have waited, at worst, before the emulator took it."""
    unread: int = 0
    """Packets that a device dropped, because the emulator did not fetch them in time."""
    write_errors: int = 0
    overflowed: int = 0
    """Packets above the emulator's own bound, which is no part of the conditions."""
    unscheduled: str | None = None
    """Why the emulators ran among ordinary processes, if they did."""
    cores_busy: float = 0.0
    """Share of all cores that the lab could not have had besides, 0 to 1: its own, what a neighbour
    of a virtual machine took, and, unless the lab runs before ordinary processes, theirs.
    """
    others_busy: float = 0.0
    """Share that ordinary processes had, whether or not the lab runs before them."""
    busiest: float = 0.0
    """Share of one core that the busiest sender or receiver used, 0 to 1."""
    busiest_name: str = ""
    loop_lag: float = 0.0
    """Worst delay of a receiver's own timer."""
    send_lag: float = 0.0
    """Worst lateness of a frame at its sender, where the sender can say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Every mode at once, for one profile and some seeds."""

    profile: str
    seeds: tuple[int, ...]
    attempt: int
    """1, or 2 for the repetition of one that was not valid."""
    machine: Machine
    faults: tuple[str, ...] = ()
    """Why its figures do not count, in words; empty if they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeNote:
    name: str
    summary: str
    reference: bool
    """A bare sender to compare with, no part of the product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileNote:
    name: str
    summary: str
    text: str
    """All its values, as `python -m netem show` prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was asked for, and what it ran on."""

    modes: tuple[ModeNote, ...]
    profiles: tuple[ProfileNote, ...]
    seeds: tuple[int, ...]
    seconds: float
    """Of audio in each flow."""
    frame_size: int
    """Bytes of a frame's payload."""
    command: str
    """That repeats it."""
    started: str
    """ISO 8601, with the zone."""
    versions: Mapping[str, str]
    """Of tenuto, aioquic, hypercorn, Python, the kernel, and the machine's cores and CPU."""
    driver: str
    """`tun` or `veth`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All that was measured; `complete` is False where it was interrupted."""

    setting: Setting
    waves: tuple[Wave, ...] = ()
    flows: tuple[Flow, ...] = ()
    complete: bool = False

    def valid_flows(self) -> tuple[Flow, ...]:
        """Those of waves without a fault."""
        return tuple(flow for flow in self.flows if not self.waves[flow.wave].faults)

    def void_profiles(self) -> tuple[str, ...]:
        """Those that ran, but never in a wave that counts."""
        counted = {wave.profile for wave in self.waves if not wave.faults}
        return tuple(dict.fromkeys(w.profile for w in self.waves if w.profile not in counted))

    def to_json(self) -> str:
        """One line; delays to 10 us."""
        told = asdict(replace(self, flows=()))
        told["flows"] = [
            # `asdict` would take its time to copy so many numbers.
            {**asdict(replace(flow, delays=())), "delays": _rounded(flow.delays)}
            for flow in self.flows
        ]
        return json.dumps({"tenuto_lab": FORMAT, **told}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, name: str) -> Results:
        """What `to_json` wrote; `name` is what an error calls it. Raises `OperatorError`."""
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            raise unreadable(name, "it is no JSON") from None
        if not isinstance(told, dict) or "tenuto_lab" not in told:
            raise unreadable(name, "it holds no results of the lab")
        if told.pop("tenuto_lab") != FORMAT:
            raise unreadable(name, f"its format is not {FORMAT}, which is all that is read here")
        try:
            results = read(cls, told)
            _check(results)
        except UnfitError as error:
            raise unreadable(name, str(error)) from None
        return results


def _rounded(delays: tuple[float | None, ...]) -> list[float | None]:
    return [None if each is None else round(each, 5) for each in delays]


def unreadable(name: str, why: str) -> OperatorError:
    """What is said of a file that holds no results."""
    return OperatorError(
        f"{name} cannot be read: {why}", remedy="give results.json of a run of tenuto lab"
    )


def _check(results: Results) -> None:
    """That its parts fit together, and that no sum of it is beyond a machine."""
    setting = results.setting
    if not 0 < setting.seconds <= _MOST_SECONDS:
        raise UnfitError(
            f"is {setting.seconds:g}, not above 0 and at most {_MOST_SECONDS:g}", ".setting.seconds"
        )
    if setting.frame_size < 1:
        raise UnfitError(f"is {setting.frame_size}, less than 1", ".setting.frame_size")
    due = round(setting.seconds / FRAME_DURATION) + 1
    for place, flow in enumerate(results.flows):
        _check_flow(flow, f".flows[{place}]", len(results.waves), due)
    frames = len(results.flows) * setting.seconds / FRAME_DURATION
    if frames > _MOST_READ:
        raise UnfitError(f"hold {frames:,.0f} frames, of {_MOST_READ:,} at most", ".flows")


def _check_flow(flow: Flow, where: str, waves: int, due: int) -> None:
    if not 0 <= flow.wave < waves:
        raise UnfitError(f"is {flow.wave}, and there are {waves} waves", f"{where}.wave")
    if len(flow.delays) > due:
        raise UnfitError(f"holds {len(flow.delays):,}, and {due:,} were due", f"{where}.delays")
    if any(delay is not None and delay < 0 for delay in flow.delays):
        raise UnfitError("holds one below 0: a frame before its time", f"{where}.delays")
    amounts = {
        "handshake": flow.handshake or 0.0,
        "first_audio": flow.first_audio or 0.0,
        "up.size": flow.up.size,
        "down.size": flow.down.size,
    }
    for name, amount in amounts.items():
        if amount < 0:
            raise UnfitError(f"is {amount:g}, below 0", f"{where}.{name}")
