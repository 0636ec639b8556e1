"""What an offer to a pure `Link` costs, as a ratio to a bare heap of the same packets."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from heapq import heappop, heappush
from statistics import median
from time import perf_counter

from bench.report import Figures, rounds, spread
from netem.catalogue import Catalogue
from netem.link import Link, Packet
from netem.profile import Conditions

__all__ = ["lines"]

PROFILES = ("clear", "loss5", "loss5-burst", "jitter", "reorder", "wifi-bad", "4g", "4g-driving")

_SPACING = 0.001
"""Seconds between two packets: 0.8 Mbit/s, which every bottleneck here lets pass."""

_DELAY = 0.030
_PACKET = Packet(bytes(100), 100)


def lines(quick: bool) -> Iterator[Figures]:
    """A line for each profile: a packet is offered, and whatever is due is taken."""
    packets, repeats = (2_000, 5) if quick else (20_000, 15)
    catalogue = Catalogue()
    for name in PROFILES:
        conditions = catalogue.load(name).up
        times: list[tuple[float, float]] = []
        for number in rounds(repeats, f"pure {name}"):
            if number % 2:
                ours, heap = _link(conditions, packets), _heap(packets)
            else:
                heap, ours = _heap(packets), _link(conditions, packets)
            times.append((ours, heap))
        yield {
            "bench": "link",
            "figure": "pure",
            "profile": name,
            "ratio_to_heapq": spread([ours / heap for ours, heap in times]),
            "offers_per_second": round(packets / median(ours for ours, _ in times)),
            "heapq_per_second": round(packets / median(heap for _, heap in times)),
            "rounds": repeats,
        }


def _link(conditions: Conditions, packets: int) -> float:
    link, now, packet = Link(conditions, 1, 0.0), 0.0, _PACKET
    gc.disable()
    began = perf_counter()
    for _ in range(packets):
        link.offer(packet, now)
        deadline = link.next_deadline()
        if deadline is not None and deadline <= now:
            link.pop_due(now)
        now += _SPACING
    elapsed = perf_counter() - began
    gc.enable()
    return elapsed


def _heap(packets: int) -> float:
    """Every packet is delayed by the same, and none is lost or counted."""
    heap: list[tuple[float, int, Packet]] = []
    now, packet = 0.0, _PACKET
    gc.disable()
    began = perf_counter()
    for number in range(packets):
        heappush(heap, (now + _DELAY, number, packet))
        while heap and heap[0][0] <= now:
            heappop(heap)
        now += _SPACING
    elapsed = perf_counter() - began
    gc.enable()
    return elapsed
