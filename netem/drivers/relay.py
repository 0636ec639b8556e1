"""A UDP relay with a path inside: no privileges, any system, and the truth about UDP alone."""

import sys
import threading
from types import TracebackType
from typing import Final, Self

from netem.drivers.relaying import Forwarder, RelayCounts
from netem.drivers.report import BedTally
from netem.drivers.udp import bound_socket, closed_port, resolve
from netem.errors import ImpairmentError, NetemError
from netem.kernel.processes import sharpen_timers
from netem.link import PathTally
from netem.profile import Answer, Profile, Way

__all__ = ["CANNOT_SHOW", "Relay", "supports"]

CANNOT_SHOW: Final = (
    "TCP: a relay of bytes would hide every loss and one round trip, so none is offered",
    "the server's ICMP errors: the client does not get them",
    "a corrupted datagram as the network would bring it: its checksum is made anew",
)
"""What this driver hides with every profile, for whoever reports what was measured."""


def supports(profile: Profile) -> list[str]:
    """Why a relay cannot apply this profile; nothing if it can."""
    reasons = []
    block = profile.block
    if block is not None and block.answer is Answer.PROHIBIT:
        reasons.append("block.answer prohibit: without privileges only a closed port can be shown")
    if block is not None and block.answer is Answer.REJECT and block.first_packets:
        reasons.append("block.first_packets with reject: a port is closed to all or to nobody")
    if block is not None and block.answer is Answer.REJECT and block.way is not None:
        reasons.append("block.way with reject: a port is closed both ways")
    for way in Way:
        mtu = profile.conditions(way).mtu
        if mtu is not None and mtu.answers:
            reasons.append(f"{way}.mtu.answers: without privileges no ICMP can be sent")
    return reasons


class Relay:
    """Between the clients that send to `address` and the server, while the context lasts.

    Each client has a socket of its own towards the server, and another one after a NAT rebinding.
    A profile that rejects UDP is a closed port: what comes there is answered by the kernel, and
    not counted.
    """

    def __init__(
        self,
        profile: Profile,
        seed: int,
        server: tuple[str, int],
        listen: tuple[str, int] = ("127.0.0.1", 0),
        *,
        idle: float = 300.0,
    ) -> None:
        reasons = supports(profile)
        if reasons:
            raise ImpairmentError(
                f"{profile.name}: {'; '.join(reasons)}; use the driver tun or veth"
            )
        target = resolve(server)
        if not target.port:
            raise NetemError(f"{target.host}:0: no server has port 0; name the port of yours")
        if not idle > 0.0:
            raise NetemError(f"idle after {idle} s: no flow would live; give more than 0")
        self._socket = bound_socket(listen)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        if _rejects(profile, target.port):
            closed_port(self._socket)
        self._forwarder = Forwarder(profile, seed, self._socket, target, idle)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="netem-relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._forwarder.wake()
        self._thread.join()
        self._forwarder.close()
        self._socket.close()

    def _run(self) -> None:
        if sys.platform == "linux":
            # This thread's alone; otherwise every wait may end 50 us late.
            sharpen_timers()
        while not self._stop.is_set():
            ready = self._forwarder.wait()
            with self._lock:
                self._forwarder.turn(ready)

    def tally(self) -> PathTally:
        with self._lock:
            return self._forwarder.tally()

    def bed_tally(self) -> BedTally:
        """The path's counts, and how true the relay was to them."""
        with self._lock:
            return BedTally(path=self._forwarder.tally(), **self._forwarder.machinery())

    def counts(self) -> RelayCounts:
        """What the relay itself did, beside the path."""
        with self._lock:
            return self._forwarder.counts()


def _rejects(profile: Profile, port: int) -> bool:
    block = profile.block
    return block is not None and block.answer is Answer.REJECT and profile.udp_port in (None, port)
