"""One direction of a path: packets go in, and come out late, out of order, twice or never.

In this order: loss, fades, blackouts, delay and jitter, reordering, corruption, duplication,
bottleneck. It is that of a router with one netem below another, so that a queue smooths the jitter
before it; but netem sends a duplicate through all of its own stages again.
"""

from netem.link.approach import Approach
from netem.link.blackouts import Blackouts
from netem.link.bottleneck import Narrow, bottleneck
from netem.link.copies import Corruption
from netem.link.delay import Travel
from netem.link.drops import Cause, Dropped, OnDrop
from netem.link.fades import Fading
from netem.link.loss import Drops, packet_loss
from netem.link.packet import Packet
from netem.link.streams import stream
from netem.link.tally import Tally
from netem.link.transit import Arrival, Transit
from netem.profile import Conditions

__all__ = ["Link"]


class Link:
    """Give it packets as they come, take them as they are due; `now` never falls.

    Each stage draws from a stream of its own, and loss comes first: which packets are lost, by
    their number, depends on the seed alone, whatever else the conditions say.
    """

    def __init__(
        self,
        conditions: Conditions,
        seed: int | str,
        started: float,
        on_drop: OnDrop | None = None,
    ) -> None:
        self._filters = _filters(conditions, seed, started)
        self._delay = conditions.delay
        self._travel: Travel | None = None
        if conditions.jitter is not None or conditions.reorder:
            self._travel = Travel(
                conditions.delay,
                conditions.jitter,
                conditions.reorder,
                stream(seed, "jitter"),
                stream(seed, "reorder"),
            )
        self._corruption: Corruption | None = None
        if conditions.corrupt:
            self._corruption = Corruption(conditions.corrupt, stream(seed, "corrupt"))
        self._duplicate = conditions.duplicate
        self._duplicates = stream(seed, "duplicate")
        overtaking = self._travel is not None and self._travel.overtaking
        self._narrow: Narrow | None = None
        self._approach: Approach | None = None
        if conditions.bottleneck is not None:
            self._narrow = bottleneck(conditions.bottleneck, started)
            if overtaking:
                self._approach = Approach()
        self._transit = Transit(overtaking=overtaking and self._narrow is None)
        self._dropped = Dropped(on_drop)
        self._offered = self._delivered = self._duplicated = 0
        self._delay_total = 0.0

    def offer(self, packet: Packet, now: float) -> None:
        self._offered += 1
        for drops, cause in self._filters:
            if drops(now):
                self._dropped.add(cause, now)
                return
        due = now + self._delay if self._travel is None else self._travel.due(now)
        if self._corruption is not None:
            packet = self._corruption.passes(packet)
        self._send(packet, now, due)
        if self._duplicate and self._duplicates() < self._duplicate:
            self._duplicated += 1
            self._send(packet, now, due)

    def _send(self, packet: Packet, offered: float, arrives: float) -> None:
        """To the bottleneck at once, if those offered before will have arrived there before."""
        if self._approach is None:
            self._enter(packet, offered, arrives)
        elif not self._approach.add(packet, offered, arrives):
            self._dropped.add("overflowed", offered)

    def _enter(self, packet: Packet, offered: float, arrives: float) -> None:
        due = arrives
        if self._narrow is not None:
            departure = self._narrow.departure(packet.size, arrives)
            if departure is None:
                self._dropped.add("queue_dropped", offered)
                return
            due = departure
        if self._transit.add(due, packet):
            self._delay_total += due - offered
        else:
            self._dropped.add("overflowed", offered)

    def pop_due(self, now: float) -> list[Packet]:
        """Remove and return those whose time has come, in the order in which they arrive."""
        return [packet for _, packet in self.pop_timed(now)]

    def pop_timed(self, now: float) -> list[Arrival]:
        """The same, each with the moment at which it was due."""
        if self._approach is not None:
            for packet, offered, arrives in self._approach.pop_arrived(now):
                self._enter(packet, offered, arrives)
        due = self._transit.pop_due(now)
        self._delivered += len(due)
        return due

    def next_deadline(self) -> float | None:
        """When to ask again. Where packets overtake before a bottleneck, none may be due then."""
        due = self._transit.next_deadline()
        arrival = None if self._approach is None else self._approach.next_arrival()
        if due is None or arrival is None:
            return arrival if due is None else due
        return min(due, arrival)

    @property
    def tally(self) -> Tally:
        in_flight, delay_total = self._transit.packets, self._delay_total
        dropped = self._dropped
        if self._approach is not None:
            in_flight += len(self._approach)
            delay_total += self._approach.delay_total
        return Tally(
            offered=self._offered,
            delivered=self._delivered,
            lost=dropped["lost"],
            faded=dropped["faded"],
            blacked_out=dropped["blacked_out"],
            queue_dropped=dropped["queue_dropped"],
            overflowed=dropped["overflowed"],
            duplicated=self._duplicated,
            corrupted=0 if self._corruption is None else self._corruption.corrupted,
            reordered=0 if self._travel is None else self._travel.reordered,
            in_flight=in_flight,
            delay_total=delay_total,
        )


def _filters(conditions: Conditions, seed: int | str, started: float) -> list[tuple[Drops, Cause]]:
    """What may drop a packet before the bottleneck, in order, with what it is called."""
    filters: list[tuple[Drops, Cause]] = []
    if conditions.loss is not None:
        filters.append((packet_loss(conditions.loss, stream(seed, "loss")), "lost"))
    if conditions.fades is not None:
        spells, losses = stream(seed, "fades"), stream(seed, "faded")
        filters.append((Fading(conditions.fades, spells, losses, started).drops, "faded"))
    if conditions.blackouts:
        filters.append((Blackouts(conditions.blackouts, started).drops, "blacked_out"))
    return filters
