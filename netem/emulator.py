"""The process that a path lives in: it moves packets between two descriptors, each at its time.

Started by `netem.drivers.emulation`, which is the other end of the control socket. When that end
closes, however it came to it, this process ends, and the devices with it.
"""

import gc
import json
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Final

from netem.kernel.ends import End, open_end
from netem.kernel.parcels import open_parcel, parcel
from netem.kernel.processes import die_with_parent, run_first, sharpen_timers
from netem.lateness import Histogram
from netem.link.drops import DropLog
from netem.link.flows import read_flow
from netem.link.icmp import icmp_error
from netem.link.packet import Packet
from netem.link.path import Path
from netem.link.refusal import Refusal
from netem.link.rewrite import with_client_port
from netem.link.transit import Arrival
from netem.profile import Profile, Way

__all__ = [
    "BATCH",
    "CHANGE",
    "DROPS",
    "MOST_LEAVING",
    "RESTART",
    "STOP",
    "TALLY",
    "Loop",
    "main",
    "read_only",
]

BATCH: Final = 64
"""Packets taken from one side before what is due gets its turn again."""

BEAT: Final = 0.005
"""Seconds to sleep at most: who then wakes up later was kept from running, and knows it.

A packet that came meanwhile carries no moment of its arrival.
"""

TALLY: Final = b"tally"
MOST_LEAVING: Final = 16
"""Paths whose last packets are still under way. Above it, those of the oldest are gone."""

CHANGE: Final = b"change"
"""With a parcel as for a restart; what is under way goes on."""
RESTART: Final = b"restart"
"""With a parcel: the pickled profile and seed that count from now on."""
DROPS: Final = b"drops"
"""Answered by a parcel."""
STOP: Final = b"stop"


class Loop:
    """Between the ends of a bed; a packet from one is offered to the path and leaves by the other.

    Single-threaded and select-driven: the timers of asyncio end up to a millisecond late.
    """

    def __init__(
        self, profile: Profile, seed: int, ends: Mapping[Way, End], control: socket.socket
    ) -> None:
        """`ends` by what they bring in: the client's end under `UP`."""
        self._ends = dict(ends)
        self._way_of = {end.fd: way for way, end in ends.items()}
        self._exit_of = {way: ends[way.back] for way in ends}
        self._control = control
        self._watched = [control.fileno(), *self._way_of]
        self.restart(profile, seed)

    def restart(self, profile: Profile, seed: int) -> None:
        """Now a path begins; what was before it is gone and forgotten."""
        self._leaving: list[tuple[Path, bool]] = []
        """Paths that take no packet any more, and whether a NAT was before them."""
        self._begin(profile, seed)

    def change(self, profile: Profile, seed: int) -> None:
        """The same, but what is under way arrives as it would have, counted by nobody."""
        self._leaving = [*self._leaving, (self._path, self._translates)][-MOST_LEAVING:]
        self._begin(profile, seed)

    def _begin(self, profile: Profile, seed: int) -> None:
        self._translates = profile.nat is not None
        self._looked = started = time.monotonic()
        self._drops = DropLog(started)
        self._path = Path(profile, seed, started, self._drops.note)
        self._lateness = Histogram()
        self._write_errors = 0
        self._behind = 0.0
        self._behind_since: dict[Way, float] = {}

    def run(self) -> None:
        """Until the control socket says stop or closes."""
        control = self._control.fileno()
        while True:
            self._release()
            patience = self._patience()
            readable, _, _ = select.select(self._watched, (), (), patience)
            now = time.monotonic()
            overslept, self._looked = now - self._looked - patience, now
            for fd in readable:
                if fd in self._way_of:
                    self._behind = max(self._behind, overslept)
                if fd != control:
                    self._take(self._way_of[fd])
                elif not self._obey():
                    return

    def _patience(self) -> float:
        deadlines = [path.next_deadline() for path, _ in self._leaving]
        deadlines.append(self._path.next_deadline())
        deadline = min((each for each in deadlines if each is not None), default=None)
        if deadline is None:
            return BEAT
        return min(max(0.0, deadline - time.monotonic()), BEAT)

    def _take(self, way: Way) -> None:
        """Offer what came in at one end, up to a batch of it."""
        read, offer = self._ends[way].read, self._path.offer
        needs_flows = self._path.needs_flows
        since = self._behind_since.get(way)
        for _ in range(BATCH):
            data = read()
            now = time.monotonic()
            if data is None:
                self._behind_since.pop(way, None)
                return
            if since is not None and now - since > self._behind:
                self._behind = now - since
            flow = read_flow(data, way) if needs_flows else None
            refusal = offer(way, Packet(data, len(data), flow), now)
            if refusal is not None:
                self._answer(way, refusal, now)
        # More may be there, and have waited since this moment.
        self._behind_since.setdefault(way, now)

    def _answer(self, way: Way, refusal: Refusal, now: float) -> None:
        """What a middle box says travels back under the conditions of that direction."""
        message = icmp_error(refusal.packet.data, refusal.answer, refusal.mtu)
        if message is not None:
            self._path.offer(way.back, Packet(message, len(message)), now)

    def _release(self) -> None:
        """Hand on what is due."""
        for leaving, translates in self._leaving:
            self._release_from(leaving, translates=translates)
        if self._leaving:
            self._leaving = [each for each in self._leaving if each[0].next_deadline() is not None]
        self._release_from(self._path, translates=self._translates)

    def _release_from(self, path: Path, *, translates: bool) -> None:
        while (deadline := path.next_deadline()) is not None:
            now = time.monotonic()
            if deadline > now:
                return
            for way, arrivals in path.pop_timed(now):
                self._hand_on(way, arrivals, translates=translates)

    def _hand_on(self, way: Way, arrivals: list[Arrival], *, translates: bool) -> None:
        write, late, clock = self._exit_of[way].write, self._lateness.add, time.monotonic
        for due, packet in arrivals:
            data = packet.data
            if translates and packet.flow is not None:
                data = with_client_port(data, way, packet.flow.client.port)
            if not write(data):
                self._write_errors += 1
            late(clock() - due)

    def _obey(self) -> bool:
        """Do what the control socket says; whether to go on."""
        order, fds, _, _ = socket.recv_fds(self._control, 64, 1)
        if order in (RESTART, CHANGE):
            # The parcel is from the process that started this one: nobody else has the socket.
            begin = self.restart if order == RESTART else self.change
            begin(*pickle.loads(open_parcel(fds[0])))  # noqa: S301
        if order == DROPS:
            self._send_drops()
        if order in (TALLY, STOP, RESTART, CHANGE):
            self._control.send(json.dumps(self.tally()).encode())
        return order in (TALLY, DROPS, RESTART, CHANGE)

    def _send_drops(self) -> None:
        log = self._drops
        told = {"started": log.started, "first": log.noted, "more": log.more}
        fd = parcel(json.dumps(told).encode())
        socket.send_fds(self._control, [DROPS], [fd])
        os.close(fd)

    def tally(self) -> dict[str, object]:
        return {
            "path": asdict(self._path.tally()),
            "lateness": self._lateness.summary(),
            "behind": self._behind,
            "write_errors": self._write_errors,
            "unread": sum(end.unread() for end in self._ends.values()),
        }


def read_only(mapping: dict[str, str]) -> MappingProxyType[str, str]:
    """What a pickled profile has its sources made by."""
    return MappingProxyType(mapping)


def main(arguments: list[str]) -> None:
    """A process of its own: its control socket and its ends are open descriptors it is told."""
    control_fd, kind, client_fd, server_fd, tied = arguments
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The one who started us decides when to end: it wants the counts first.
        signal.signal(ignored, signal.SIG_IGN)
    if tied == "tied":
        die_with_parent()
    control = socket.socket(fileno=int(control_fd))
    if select.select([control], (), (), 0)[0]:
        return
    # From the process that started this one, over a pipe that nobody else can write to.
    profile, seed = pickle.load(sys.stdin.buffer)  # noqa: S301
    sharpen_timers()
    unscheduled = run_first()
    ends = {
        Way.UP: open_end(kind, int(client_fd)),
        Way.DOWN: open_end(kind, int(server_fd)),
    }
    loop = Loop(profile, seed, ends, control)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        control.send(json.dumps({"unscheduled": unscheduled}).encode())
        loop.run()
    except (BrokenPipeError, ConnectionResetError):
        # Nobody is left to tell.
        os._exit(0)
