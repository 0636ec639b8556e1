"""What became of the packets, counted."""

from dataclasses import dataclass

__all__ = ["PathTally", "Tally", "WayTally"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Of one link. Always offered + duplicated == delivered + dropped + in_flight."""

    offered: int = 0
    delivered: int = 0
    lost: int = 0
    """At random or in a burst."""
    faded: int = 0
    blacked_out: int = 0
    queue_dropped: int = 0
    overflowed: int = 0
    """Above the bound on what may be under way: not a part of the conditions."""
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    """Due before a packet that was offered earlier."""
    in_flight: int = 0
    delay_total: float = 0.0
    """Seconds from offer to due, of all that were delivered or are under way."""

    @property
    def dropped(self) -> int:
        return self.lost + self.faded + self.blacked_out + self.queue_dropped + self.overflowed

    @property
    def mean_delay(self) -> float:
        passed = self.delivered + self.in_flight
        return self.delay_total / passed if passed else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WayTally:
    """Of one direction. What its gate held back was never offered to its link."""

    link: Tally
    size: int = 0
    """Bytes that were offered, as whole IP packets, with what the gate held back."""
    blocked: int = 0
    policed: int = 0
    too_big: int = 0
    unbound: int = 0
    """Without a binding in the NAT: what comes down, and ICMP errors either way."""

    @property
    def offered(self) -> int:
        return self.link.offered + self.blocked + self.policed + self.too_big + self.unbound


@dataclass(frozen=True, slots=True, kw_only=True)
class PathTally:
    up: WayTally
    down: WayTally
    rebindings: int = 0
    """Flows that had a binding, lost it by schedule or idleness, and were given another."""
    forgotten: int = 0
    """Entries that went to make room: bindings of the NAT and flows the firewall counted."""
