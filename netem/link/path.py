"""Both directions of a path and what stands between."""

from typing import Final

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
    """Two links behind their gates; `now` never falls, and both share it."""

    def __init__(self, profile: Profile, seed: int, started: float) -> None:
        self._nat = Translation(profile.nat, started) if profile.nat is not None else None
        self._up = _Direction(profile, Way.UP, self._nat, seed, started)
        self._down = _Direction(profile, Way.DOWN, self._nat, seed, started)
        self.needs_flows = any((profile.block, profile.police, profile.nat))
        """Whether the driver must fill in `Packet.flow`."""

    def offer(self, way: Way, packet: Packet, now: float) -> Refusal | None:
        """A refusal is to be answered to the sender; whatever else befalls is only counted."""
        direction = self._up if way is _UP else self._down
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
        self, profile: Profile, way: Way, nat: Translation | None, seed: int, started: float
    ) -> None:
        conditions = profile.conditions(way)
        self.gate = Gate(profile, way, nat, started)
        self.gated = any((profile.block, profile.police, nat is not None, conditions.mtu))
        self.link = Link(conditions, f"{seed}/{way}", started)

    def tally(self) -> WayTally:
        return self.gate.tally(self.link.tally)
