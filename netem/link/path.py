"""Both directions of a path and what stands between."""

from collections.abc import Callable
from functools import partial
from typing import Final

from netem.link.drops import Cause, OnDrop
from netem.link.gate import Gate
from netem.link.link import Link
from netem.link.nat import Translation
from netem.link.packet import Packet
from netem.link.refusal import Refusal
from netem.link.tally import PathTally, WayTally
from netem.link.transit import Arrival
from netem.profile import Profile, Way

__all__ = ["Path"]

# Looking up a member of an enumeration takes its time on Python 3.11.
_UP: Final = Way.UP
_DOWN: Final = Way.DOWN


class Path:
    """Two links behind their gates; `now` never falls, and both share it.

    `on_drop` is told of each packet that is dropped: its way, why, and when it was offered.
    """

    def __init__(
        self,
        profile: Profile,
        seed: int,
        started: float,
        on_drop: Callable[[Way, Cause, float], None] | None = None,
    ) -> None:
        self._nat = Translation(profile.nat, started) if profile.nat is not None else None
        up, down = (
            _Direction(profile, way, self._nat, seed, started, on_drop and partial(on_drop, way))
            for way in (_UP, _DOWN)
        )
        self._up, self._down = up, down
        self.needs_flows = any((profile.block, profile.police, profile.nat))
        """Whether the driver must fill in `Packet.flow`."""

    def offer(self, way: Way, packet: Packet, now: float) -> Refusal | None:
        """A refusal is to be answered to the sender; whatever else befalls is only counted."""
        direction = self._up if way is _UP else self._down
        direction.size += packet.size
        if direction.gated:
            admitted = direction.gate.admit(packet, now)
            if not isinstance(admitted, Packet):
                return admitted
            packet = admitted
        direction.link.offer(packet, now)
        return None

    def pop_due(self, now: float) -> list[tuple[Way, Packet]]:
        """Those whose time has come. Behind a NAT, each has the flow it is to be sent as."""
        due = [(_UP, packet) for packet in self._up.link.pop_due(now)]
        due += [(_DOWN, packet) for packet in self._down.link.pop_due(now)]
        return due

    def pop_timed(self, now: float) -> list[tuple[Way, list[Arrival]]]:
        """The same by direction, each with the moment at which it was due."""
        return [(_UP, self._up.link.pop_timed(now)), (_DOWN, self._down.link.pop_timed(now))]

    def next_deadline(self) -> float | None:
        up, down = self._up.link.next_deadline(), self._down.link.next_deadline()
        if up is None or down is None:
            return down if up is None else up
        return min(up, down)

    def tally(self) -> PathTally:
        nat, gates = self._nat, (self._up.gate, self._down.gate)
        forgotten = sum(gate.forgotten for gate in gates)
        return PathTally(
            up=self._up.tally(),
            down=self._down.tally(),
            rebindings=0 if nat is None else nat.rebindings,
            forgotten=forgotten + (0 if nat is None else nat.forgotten),
        )


class _Direction:
    def __init__(
        self,
        profile: Profile,
        way: Way,
        nat: Translation | None,
        seed: int,
        started: float,
        on_drop: OnDrop | None,
    ) -> None:
        conditions = profile.conditions(way)
        self.size = 0
        """Bytes that were offered, with what the gate held back."""
        self.gate = Gate(profile, way, nat, started, on_drop)
        self.gated = any((profile.block, profile.police, nat is not None, conditions.mtu))
        self.link = Link(conditions, f"{seed}/{way}", started, on_drop)

    def tally(self) -> WayTally:
        return self.gate.tally(self.link.tally, self.size)
