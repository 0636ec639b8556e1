"""Both directions of a path and what stands between."""

from netem.link.gate import Gate
from netem.link.link import Link
from netem.link.nat import Translation
from netem.link.packet import Packet
from netem.link.refusal import Refusal
from netem.link.tally import PathTally
from netem.profile import Profile, Way

__all__ = ["Path"]


class Path:
    """Two links behind their gates; `now` never falls, and both share it."""

    def __init__(self, profile: Profile, seed: int, started: float) -> None:
        self._nat = Translation(profile.nat, started) if profile.nat is not None else None
        self._gates = {way: Gate(profile, way, self._nat, started) for way in Way}
        self._links = {way: Link(profile.conditions(way), f"{seed}/{way}", started) for way in Way}
        self._gated = {
            way: self._nat is not None
            or profile.block is not None
            or profile.police is not None
            or profile.conditions(way).mtu is not None
            for way in Way
        }
        self.needs_flows = any((profile.block, profile.police, profile.nat))
        """Whether the driver must fill in `Packet.flow`."""

    def offer(self, way: Way, packet: Packet, now: float) -> Refusal | None:
        """A refusal is to be answered to the sender; whatever else befalls is only counted."""
        if self._gated[way]:
            admitted = self._gates[way].admit(packet, now)
            if not isinstance(admitted, Packet):
                return admitted
            packet = admitted
        self._links[way].offer(packet, now)
        return None

    def pop_due(self, now: float) -> list[tuple[Way, Packet]]:
        """Those whose time has come. Behind a NAT, each has the flow it is to be sent as."""
        return [(way, packet) for way, link in self._links.items() for packet in link.pop_due(now)]

    def next_deadline(self) -> float | None:
        deadlines = [
            deadline
            for link in self._links.values()
            if (deadline := link.next_deadline()) is not None
        ]
        return min(deadlines, default=None)

    def tally(self) -> PathTally:
        gates = self._gates
        return PathTally(
            up=gates[Way.UP].tally(self._links[Way.UP].tally),
            down=gates[Way.DOWN].tally(self._links[Way.DOWN].tally),
            rebindings=self._nat.rebindings if self._nat else 0,
            forgotten=sum(gate.forgotten for gate in gates.values())
            + (self._nat.forgotten if self._nat else 0),
        )
