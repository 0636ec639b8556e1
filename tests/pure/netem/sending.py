"""Packets for a link, and what became of each."""

from collections.abc import Iterable, Sequence

from netem.link import Endpoint, Flow, Link, Packet, Tally
from netem.profile import Conditions

__all__ = [
    "CLIENT",
    "FLOW",
    "SERVER",
    "arrivals",
    "law",
    "lost_numbers",
    "number_of",
    "numbered",
    "runs",
]

CLIENT = Endpoint(b"\xc6\x12\x00\x02", 5000)
SERVER = Endpoint(b"\xc6\x12\x00\x01", 4433)
FLOW = Flow(17, CLIENT, SERVER)


def numbered(number: int, size: int = 100) -> Packet:
    return Packet(number.to_bytes(4), size, FLOW)


def number_of(packet: Packet) -> int:
    return int.from_bytes(packet.data[:4])


def arrivals(link: Link, times: Iterable[float], size: int = 100) -> list[tuple[int, float]]:
    """Send a packet at each of the times; number and moment of each arrival, in their order."""
    for number, time in enumerate(times):
        link.offer(numbered(number, size), time)
    found = []
    while (deadline := link.next_deadline()) is not None:
        found += [(number_of(packet), deadline) for packet in link.pop_due(deadline)]
    return found


def lost_numbers(conditions: Conditions, seed: int | str, count: int, gap: float) -> list[int]:
    """Which of `count` packets were lost by chance, whatever else befell the others."""
    link = Link(conditions, seed, 0.0)
    lost, before = [], 0
    for number in range(count):
        link.offer(numbered(number), number * gap)
        link.pop_due(number * gap)
        if link.tally.lost > before:
            before += 1
            lost.append(number)
    return lost


def runs(numbers: Sequence[int]) -> list[int]:
    """Lengths of the runs of consecutive numbers."""
    lengths: list[int] = []
    last = None
    for number in numbers:
        if number - 1 == last:
            lengths[-1] += 1
        else:
            lengths.append(1)
        last = number
    return lengths


def law(tally: Tally) -> bool:
    """Every packet is somewhere, once."""
    dropped = tally.lost + tally.faded + tally.blacked_out + tally.queue_dropped + tally.overflowed
    kept = tally.delivered + tally.in_flight
    return tally.offered + tally.duplicated == kept + dropped and tally.dropped == dropped
