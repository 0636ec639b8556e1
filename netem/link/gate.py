"""What stands at the entry of one direction: MTU, block, police and NAT, in this order."""

from netem.link.drops import Dropped, OnDrop
from netem.link.firewall import FirstPackets, TokenBucket
from netem.link.headers import UDP
from netem.link.nat import Translation
from netem.link.packet import Flow, Packet, QuotedFlow
from netem.link.refusal import TOO_BIG, Refusal
from netem.link.tally import Tally, WayTally
from netem.profile import Answer, Mtu, Profile, Way

__all__ = ["Gate"]


class Gate:
    def __init__(
        self,
        profile: Profile,
        way: Way,
        nat: Translation | None,
        started: float,
        on_drop: OnDrop | None = None,
    ) -> None:
        self._way = way
        self._mtu: Mtu | None = profile.conditions(way).mtu
        self._port = profile.udp_port
        block = profile.block
        self._block = block if block is not None and block.way in (None, way) else None
        self._first = FirstPackets(self._block.first_packets if self._block else 0)
        self._bucket = TokenBucket(profile.police, started) if profile.police else None
        self._nat = nat
        self._dropped = Dropped(on_drop)

    def admit(self, packet: Packet, now: float) -> Packet | Refusal | None:
        """The packet as the link takes it, with its flow as it is beyond a NAT; else why not.

        None: it is gone, and nobody is told.
        """
        if self._mtu is not None and packet.size > self._mtu.size:
            self._dropped.add("too_big", now)
            return Refusal(TOO_BIG, packet, self._mtu.size) if self._mtu.answers else None
        flow = packet.flow
        if flow is None:
            return packet
        if isinstance(flow, QuotedFlow):
            return packet if self._nat is None else self._told(packet, flow, self._nat, now)
        if self._looks_at(flow):
            if self._block is not None and not self._first.passes(flow):
                self._dropped.add("blocked", now)
                answer = self._block.answer
                return None if answer is Answer.DROP else Refusal(answer, packet)
            if self._bucket is not None and not self._bucket.passes(packet.size, now):
                self._dropped.add("policed", now)
                return None
        return packet if self._nat is None else self._translated(packet, flow, self._nat, now)

    def _looks_at(self, flow: Flow) -> bool:
        return flow.protocol == UDP and self._port in (None, flow.server.port)

    def _translated(
        self, packet: Packet, flow: Flow, nat: Translation, now: float
    ) -> Packet | None:
        if self._way is Way.UP:
            return packet._replace(flow=nat.outward(flow, now))
        inside = nat.inward(flow, now)
        if inside is None:
            self._dropped.add("unbound", now)
            return None
        return packet._replace(flow=inside)

    def _told(
        self, packet: Packet, flow: QuotedFlow, nat: Translation, now: float
    ) -> Packet | None:
        other = nat.about(flow, self._way, now)
        if other is None:
            self._dropped.add("unbound", now)
            return None
        return packet._replace(flow=QuotedFlow(*other))

    @property
    def forgotten(self) -> int:
        return self._first.forgotten

    def tally(self, link: Tally, size: int) -> WayTally:
        """With that of the link behind it, and the bytes that it was offered itself."""
        dropped = self._dropped
        return WayTally(
            link=link,
            size=size,
            blocked=dropped["blocked"],
            policed=dropped["policed"],
            too_big=dropped["too_big"],
            unbound=dropped["unbound"],
        )
