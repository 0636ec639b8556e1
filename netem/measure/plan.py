"""What a measurement sends, and what its process hands back: values that travel as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from netem.measure.numbering import SMALLEST
from netem.measure.statistics import Arrival
from netem.profile.conditions import Way

__all__ = ["Plan", "Record", "Recorded", "read_plan", "read_record", "write_plan", "write_record"]

MOST_PACKETS: Final = 1_000_000
FASTEST: Final = 20_000.0
"""Packets a second each way: above, a sender in Python no longer keeps its pace."""
LARGEST: Final = 1472
"""Bytes of payload that fit an Ethernet packet over IPv4."""
LARGEST6: Final = 1452
"""The same over IPv6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`packets` each way at `rate` a second, and how long to wait for the last of them."""

    packets: int = 20_000
    rate: float = 4_000.0
    size: int = 100
    """Bytes of the payload."""
    linger: float = 0.5
    run: int = 1
    """Tells packets of this measurement from those of another."""
    unchecked: bool = False
    """Send without UDP's checksum, so that damaged packets arrive and can be counted."""

    def __post_init__(self) -> None:
        for what, value, low, high in (
            ("packets", self.packets, 1, MOST_PACKETS),
            ("packets a second", self.rate, 1, FASTEST),
            ("bytes a packet", self.size, SMALLEST, LARGEST),
        ):
            if not low <= value <= high:
                raise ValueError(f"{what} must be from {low} to {high:g}, not {value}")

    @property
    def duration(self) -> float:
        return self.packets / self.rate


@dataclass(frozen=True, slots=True)
class Record:
    """One direction, raw: when each packet was sent, and what came when, in seconds."""

    sent_at: tuple[float, ...]
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Both directions, and whether the measuring itself can be trusted."""

    records: Mapping[Way, Record]
    late: int
    """Packets sent more than a millisecond after their time: the machine was busy."""
    overflowed: int
    """Packets that came and that our own sockets had no room for."""
    clock_step: float
    """By how much the clock was set meanwhile."""
    epoch: int = 0
    """The wall clock's nanoseconds that are 0 in the records."""
    refused: int = 0
    """Packets that this host itself would not send."""
    refusal: str = ""
    """Its words."""


def write_plan(plan: Plan) -> str:
    return json.dumps(asdict(plan))


def read_plan(text: str) -> Plan:
    return Plan(**json.loads(text))


def write_record(recorded: Recorded) -> str:
    value = {
        "records": {
            way.value: {"sent_at": record.sent_at, "arrivals": record.arrivals}
            for way, record in recorded.records.items()
        },
        "late": recorded.late,
        "overflowed": recorded.overflowed,
        "clock_step": recorded.clock_step,
        "epoch": recorded.epoch,
        "refused": recorded.refused,
        "refusal": recorded.refusal,
    }
    return json.dumps(value)


def read_record(text: str) -> Recorded:
    value = json.loads(text)
    return Recorded(
        records={
            Way(way): Record(
                tuple(record["sent_at"]), tuple(Arrival(*one) for one in record["arrivals"])
            )
            for way, record in value["records"].items()
        },
        late=value["late"],
        overflowed=value["overflowed"],
        clock_step=value["clock_step"],
        epoch=value["epoch"],
        refused=value["refused"],
        refusal=value["refusal"],
    )
