"""A path between two sans-I/O endpoints in virtual time: a minute takes as long as its packets."""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Final, Protocol

from netem.errors import ImpairmentError
from netem.link import Endpoint, Flow, Packet, Path, PathTally
from netem.profile import Answer, Profile, Way

__all__ = ["Address", "MemoryPath", "Peer", "supports"]

Address = tuple[str, int]

_UDP: Final = 17
_IPV4_AND_UDP: Final = 28
_IPV6_AND_UDP: Final = 48
_PAST: Final = 1e-6
"""A timer is handled this much after its time, and no two of its calls come closer: rounding may
tell an endpoint that is called at the very moment that its time has not come, again and again."""


class Peer(Protocol):
    """An endpoint that only ever learns the time from its caller."""

    def receive(self, data: bytes, source: Address, now: float) -> None: ...

    def datagrams_to_send(self, now: float) -> Iterable[tuple[bytes, Address]]: ...

    def next_timer(self) -> float | None: ...

    def handle_timer(self, now: float) -> None: ...


def supports(profile: Profile) -> list[str]:
    """Why two endpoints in memory cannot have this profile; nothing if they can."""
    reasons = []
    if profile.block is not None and profile.block.answer is not Answer.DROP:
        reasons.append(f"block.answer {profile.block.answer}: endpoints in memory hear no ICMP")
    for way in Way:
        mtu = profile.conditions(way).mtu
        if mtu is not None and mtu.answers:
            reasons.append(f"{way}.mtu.answers: endpoints in memory hear no ICMP")
    return reasons


class MemoryPath:
    """Moves the datagrams of a client and a server, and time.

    An endpoint is asked for what it has to send after it was given a datagram or a timer; after
    anything else that makes it send, call `transmit`. The addresses may be set: an endpoint that
    moves. A datagram that arrives where nobody is goes `astray`.
    """

    def __init__(
        self,
        profile: Profile,
        seed: int,
        client: Peer,
        server: Peer,
        *,
        started: float = 0.0,
        client_address: Address = ("192.0.2.1", 40001),
        server_address: Address = ("192.0.2.2", 4433),
    ) -> None:
        reasons = supports(profile)
        if reasons:
            raise ImpairmentError(
                f"{profile.name}: {'; '.join(reasons)}; use the driver tun or veth"
            )
        self.now = started
        self.client_address = client_address
        self.server_address = server_address
        self.astray = 0
        self._path = Path(profile, seed, started)
        self._peers = {Way.UP: client, Way.DOWN: server}
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._called = 0
        self._handled = dict.fromkeys(Way, started - _PAST)

    def tally(self) -> PathTally:
        return self._path.tally()

    def at(self, time: float, call: Callable[[], None]) -> None:
        """Make this call when `run_until` comes to its time; those of one time in their order."""
        self._called += 1
        heappush(self._calls, (time, self._called, call))

    def transmit(self, way: Way) -> None:
        """What the endpoint at the start of this way has to send goes on it."""
        for data, address in self._peers[way].datagrams_to_send(self.now):
            self._offer(way, data, address)

    def _offer(self, way: Way, data: bytes, address: Address) -> None:
        source, destination = Endpoint(*self._start(way)), Endpoint(*address)
        ends = (source, destination) if way is Way.UP else (destination, source)
        headers = _IPV6_AND_UDP if ":" in address[0] else _IPV4_AND_UDP
        self._path.offer(way, Packet(data, len(data) + headers, Flow(_UDP, *ends)), self.now)

    def _start(self, way: Way) -> Address:
        """Where this way starts."""
        return self.client_address if way is Way.UP else self.server_address

    def run_until(self, time: float) -> None:
        """Let everything happen that is due up to `time`, the last moment included."""
        while (event := self._next_event()) is not None and event <= time:
            self.now = max(self.now, event)
            self._arrivals()
            self._due_calls()
            for way in Way:
                self._timer(way)
        self.now = max(self.now, time)

    def _next_event(self) -> float | None:
        events = [timer for way in Way if (timer := self._timer_at(way)) is not None]
        if (deadline := self._path.next_deadline()) is not None:
            events.append(deadline)
        if self._calls:
            events.append(self._calls[0][0])
        return min(events, default=None)

    def _timer_at(self, way: Way) -> float | None:
        timer = self._peers[way].next_timer()
        return None if timer is None else max(timer, self._handled[way]) + _PAST

    def _arrivals(self) -> None:
        for way, packet in self._path.pop_due(self.now):
            assert packet.flow is not None
            _, client, server = packet.flow
            source, destination = (client, server) if way is Way.UP else (server, client)
            if destination != self._start(way.back):
                self.astray += 1
                continue
            address = (str(source.address), source.port)
            self._peers[way.back].receive(packet.data, address, self.now)
            self.transmit(way.back)

    def _due_calls(self) -> None:
        while self._calls and self._calls[0][0] <= self.now:
            heappop(self._calls)[2]()

    def _timer(self, way: Way) -> None:
        due = self._timer_at(way)
        if due is not None and due <= self.now:
            self._handled[way] = self.now
            self._peers[way].handle_timer(self.now)
            self.transmit(way)
