"""The process that measures: it sends both ways, paced, reads what comes, and prints a record.

Started by `netem.measure.running`, with the two sockets as descriptors. Progress goes out as lines
of two numbers, packets sent and packets to send; the record is the last line.
"""

import gc
import json
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Final

from netem.kernel.processes import PRIORITY, run_first, sharpen_timers
from netem.measure.numbering import pack, unpack
from netem.measure.plan import Plan, Record, Recorded, read_plan, write_record
from netem.measure.sockets import Address, hear, send_unchecked
from netem.measure.statistics import Arrival
from netem.profile.conditions import Way

__all__ = ["main", "measure"]

_DRAIN_EVERY: Final = 0.01
_PROGRESS_EVERY: Final = 0.25
_LATE: Final = 0.001


@dataclass(slots=True)
class _End:
    """One end: it sends one direction and hears the other."""

    socket: socket.socket
    peer: Address | None
    due: float
    sent_at: list[int] = field(default_factory=list)
    arrivals: list[tuple[int, int, bool]] = field(default_factory=list)
    overflowed: int = 0
    late: int = 0
    refused: int = 0
    refusal: str = ""

    def send_due(self, now: float, plan: Plan) -> float:
        """Send one packet if it is time; returns when the next is due."""
        if len(self.sent_at) >= plan.packets:
            return float("inf")
        if self.peer is None:
            # The first packet from the other end tells where it is, as it tells a server.
            return now + _DRAIN_EVERY / 10
        if now < self.due:
            return self.due
        self.late += now - self.due > _LATE
        payload = pack(plan.run, len(self.sent_at), plan.size)
        self.sent_at.append(time.time_ns())
        try:
            self.socket.sendto(payload, self.peer)
        except OSError as error:
            # It shows as a packet that never came, but it is not the path that lost it.
            self.refused += 1
            self.refusal = error.strerror or str(error)
        # Who is late does not catch up: a burst would fill queues that the plan leaves empty.
        self.due = max(self.due + 1 / plan.rate, now)
        return self.due

    def drain(self, run: int, *, learning: bool) -> None:
        while (heard := hear(self.socket)) is not None:
            self.overflowed = heard.overflowed
            numbered = unpack(heard.payload)
            if numbered is None or numbered.run != run:
                continue
            if learning:
                self.peer = heard.source
            self.arrivals.append((numbered.sequence, heard.at, numbered.intact))


def measure(
    ends: tuple[socket.socket, socket.socket], peers: tuple[Address, Address | None], plan: Plan
) -> Recorded:
    """`peers[1]` None: the server learns from each packet where its client is now."""
    start = time.monotonic() + _DRAIN_EVERY
    epoch = time.time_ns()
    offset = epoch - time.monotonic_ns()
    client = _End(ends[0], peers[0], start)
    server = _End(ends[1], peers[1], start + 0.5 / plan.rate)
    learning = peers[1] is None
    if plan.unchecked:
        for end in ends:
            send_unchecked(end)
    _send_all(client, server, plan, learning=learning)
    _wait_for_the_last(client, server, plan, learning=learning)
    return Recorded(
        records={
            Way.UP: _record(client, server, epoch),
            Way.DOWN: _record(server, client, epoch),
        },
        late=client.late + server.late,
        overflowed=client.overflowed + server.overflowed,
        clock_step=abs(time.time_ns() - time.monotonic_ns() - offset) / 1e9,
        epoch=epoch,
        refused=client.refused + server.refused,
        refusal=client.refusal or server.refusal,
    )


def _send_all(client: _End, server: _End, plan: Plan, *, learning: bool) -> None:
    drain_at = progress_at = time.monotonic()
    # A server that was never told where its client is sends nothing at all.
    give_up = drain_at + plan.duration * 3 + plan.linger
    while True:
        now = time.monotonic()
        wake = min(client.send_due(now, plan), server.send_due(now, plan))
        if now >= drain_at or (learning and server.peer is None):
            client.drain(plan.run, learning=False)
            server.drain(plan.run, learning=learning)
            drain_at = now + _DRAIN_EVERY
        if now >= progress_at:
            _say_progress(client, server, plan)
            progress_at = now + _PROGRESS_EVERY
        if wake == float("inf") or (server.peer is None and now > give_up):
            return
        left = wake - time.monotonic()
        if left > 0:
            time.sleep(left)


def _wait_for_the_last(client: _End, server: _End, plan: Plan, *, learning: bool) -> None:
    end = time.monotonic() + plan.linger
    while time.monotonic() < end:
        client.drain(plan.run, learning=False)
        server.drain(plan.run, learning=learning)
        time.sleep(_DRAIN_EVERY)
    client.drain(plan.run, learning=False)
    server.drain(plan.run, learning=learning)


def _record(sender: _End, receiver: _End, epoch: int) -> Record:
    return Record(
        sent_at=tuple((at - epoch) / 1e9 for at in sender.sent_at),
        arrivals=tuple(
            Arrival(sequence, (at - epoch) / 1e9, intact)
            for sequence, at, intact in receiver.arrivals
        ),
    )


def _say_progress(client: _End, server: _End, plan: Plan) -> None:
    _tell(f"{len(client.sent_at) + len(server.sent_at)} {2 * plan.packets}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """A process of its own: its sockets are open descriptors that it is told."""
    # Nothing here makes cycles, and a collection would show as a late packet.
    gc.disable()
    if sys.platform == "linux":
        sharpen_timers()
        # Behind the emulator, which has a packet's time to keep; we only note times.
        run_first(priority=PRIORITY - 1)
    descriptors, peers, plan = arguments
    first, second = (socket.socket(fileno=int(number)) for number in descriptors.split(","))
    to_server, to_client = json.loads(peers)
    addresses = ((to_server[0], to_server[1]), tuple(to_client) if to_client else None)
    _tell(write_record(measure((first, second), addresses, read_plan(plan))))
