"""A NAT: each flow of the client has a port outside, until that binding is forgotten."""

from bisect import bisect_right
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from netem.link.packet import Flow
from netem.profile import Nat, Way

__all__ = ["MAX_BINDINGS", "Translation"]

_FIRST_PORT: Final = 1024
MAX_BINDINGS: Final = 65_536 - _FIRST_PORT
"""The ports of one address. When all are bound, the flow least recently used loses its own."""


@dataclass(slots=True)
class _Binding:
    inside: Flow
    outside: Flow
    used: float


class Translation:
    """Which flow is which on the other side. `now` never falls.

    Every flow has a binding of its own: both its mapping and its filtering depend on the server's
    endpoint (RFC 4787). A port comes into use again after all others have.
    """

    def __init__(self, nat: Nat, started: float) -> None:
        if nat.rebind_every is not None and nat.rebind_every <= 0.0:
            raise ValueError(f"a NAT cannot rebind every {nat.rebind_every} s")
        self._nat = nat
        self._started = started
        self._rebind_at = sorted(nat.rebind_at)
        self._every_from = self._rebind_at[-1] if self._rebind_at else 0.0
        self._epoch = 0
        self._free = deque(range(_FIRST_PORT, _FIRST_PORT + MAX_BINDINGS))
        # In order of use, the oldest first.
        self._inside: OrderedDict[Flow, _Binding] = OrderedDict()
        self._outside: dict[Flow, _Binding] = {}
        # Flows that once were bound: at most as many as there are ports.
        self._unbound: OrderedDict[Flow, None] = OrderedDict()
        self.rebindings = 0
        """Flows that were given a binding after they had lost one by schedule or idleness."""
        self.forgotten = 0
        """Bindings that went to make room."""

    def outward(self, flow: Flow, now: float) -> Flow:
        """As the server sees this flow of the client."""
        self._expire(now)
        binding = self._inside.get(flow) or self._bind(flow, now)
        self._use(binding, now)
        return binding.outside

    def inward(self, flow: Flow, now: float) -> Flow | None:
        """As the client knows the flow that the server sees as this; None: nobody's."""
        self._expire(now)
        binding = self._outside.get(flow)
        if binding is None:
            return None
        if self._nat.inbound_refresh:
            self._use(binding, now)
        return binding.inside

    def about(self, flow: Flow, way: Way, now: float) -> Flow | None:
        """As the other side knows the flow that an ICMP error on this way is about.

        An error neither makes a binding nor keeps one (RFC 5508, section 4.2).
        """
        self._expire(now)
        if way is Way.UP:
            binding = self._inside.get(flow)
            return None if binding is None else binding.outside
        binding = self._outside.get(flow)
        return None if binding is None else binding.inside

    def __len__(self) -> int:
        return len(self._inside)

    def _use(self, binding: _Binding, now: float) -> None:
        binding.used = now
        self._inside.move_to_end(binding.inside)

    def _bind(self, flow: Flow, now: float) -> _Binding:
        if not self._free:
            self._forget()
            self.forgotten += 1
        if flow in self._unbound:
            del self._unbound[flow]
            self.rebindings += 1
        client = flow.client._replace(port=self._free.popleft())
        binding = _Binding(flow, flow._replace(client=client), now)
        self._inside[flow] = self._outside[binding.outside] = binding
        return binding

    def _forget(self) -> Flow:
        """The binding least recently used."""
        flow, binding = self._inside.popitem(last=False)
        del self._outside[binding.outside]
        self._free.append(binding.outside.client.port)
        return flow

    def _expire(self, now: float) -> None:
        epoch = self._rebinds_until(now - self._started)
        everything = epoch > self._epoch
        self._epoch = epoch
        while self._inside and (everything or self._idle(now)):
            self._unbound[self._forget()] = None
            if len(self._unbound) > MAX_BINDINGS:
                self._unbound.popitem(last=False)

    def _idle(self, now: float) -> bool:
        oldest = next(iter(self._inside.values()))
        return self._nat.idle is not None and now - oldest.used >= self._nat.idle

    def _rebinds_until(self, elapsed: float) -> int:
        count = bisect_right(self._rebind_at, elapsed)
        if self._nat.rebind_every is not None:
            since = elapsed - self._every_from
            count += int(max(0.0, since) // self._nat.rebind_every)
        return count
