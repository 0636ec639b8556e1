"""A real `sch_netem` between two hosts, where this kernel has none: the lines of `netem.tc` run
on a router that is a virtual machine.
"""

import contextlib
import json
import os
from types import TracebackType
from typing import Final, Self

from netem.drivers.report import BedTally, Lateness
from netem.drivers.tclines import counts_of, refuse_seed, rule_counts, transmitted
from netem.errors import ImpairmentError
from netem.kernel.interfaces import transmit_drops
from netem.link.tally import PathTally, Tally, WayTally
from netem.profile.conditions import Profile, Way
from netem.tc import HANDLE, TABLE, Command, Ends, Hop, Plan, plan, shell
from netem.vm.machine import Machine, RefusedLineError
from netem.vm.router import INTERFACES, make_host, router_script

__all__ = ["VmBed"]

_HOP: Final = Hop(to_client=INTERFACES[0], to_server=INTERFACES[1])
_NEXT: Final = "netem-next"
"""The word before what each line of a script says."""


class VmBed:
    """Two hosts and a machine between them, all gone with this process, however it ends.

    The kernel draws the packets' fates without a seed: the same losses never come twice.
    """

    def __init__(self, profile: Profile, *, congestion: str = "cubic") -> None:
        """ImpairmentError for a profile that tc cannot do whole, and where no machine can be."""
        # Before it is started, which takes its time.
        _whole(profile, Ends(client=("198.18.0.2",), server=("198.18.0.1",)))
        self._lines: tuple[Command, ...] = ()
        self._undo: tuple[Command, ...] = ()
        self._sent_before = dict.fromkeys(Way, 0)
        self._dropped_before = 0
        self._final: BedTally | None = None
        with contextlib.ExitStack() as undo:
            self.client, client_tap = make_host(0, congestion)
            undo.callback(self.client.namespace.close)
            with os.fdopen(client_tap, "rb", buffering=0):
                self.server, server_tap = make_host(1, congestion)
                undo.callback(self.server.namespace.close)
                with os.fdopen(server_tap, "rb", buffering=0):
                    self.machine = Machine((client_tap, server_tap))
            undo.callback(self.machine.close)
            undo.callback(self._end_programs)
            self._tell(router_script())
            self.apply(profile)
            self._stack = undo.pop_all()

    def apply(self, profile: Profile) -> None:
        """Undo the lines of the profile before, then run this one's."""
        lines = _whole(profile, self._ends())
        self._run(self._undo)
        self._lines, self._undo = (), ()
        try:
            self._run(lines.apply)
        except ImpairmentError:
            # Some were run. A line that has nothing to undo fails, which is as well.
            self._tell("\n".join(f"{shell(line)} || true" for line in lines.undo))
            raise
        self._lines, self._undo = lines.apply, lines.undo
        self._count_anew()

    def restart(self, profile: Profile | None = None, seed: int | None = None) -> None:
        """Take the lines back and run them again, or others: what is under way is gone."""
        refuse_seed(seed)
        if profile is not None:
            self.apply(profile)
            return
        self._run(self._undo + self._lines)
        self._count_anew()

    def check(self) -> None:
        """ImpairmentError if the machine no longer answers, or lost its qdiscs."""
        shown = self._tell("tc qdisc show")
        wanted = sum(line[0] == "tc" and "root" in line for line in self._lines)
        if sum(f" {HANDLE} " in line and " root " in line for line in shown.split("\n")) < wanted:
            raise ImpairmentError(f"A qdisc {HANDLE} of the machine is gone.")

    def tally(self) -> BedTally:
        """Also after `close`: the last one then."""
        if self._final is not None:
            return self._final
        counts: dict[str, int] = {}
        if any(line[0] == "nft" for line in self._lines):
            counts = rule_counts(json.loads(self._tell(f"nft -j list table inet {TABLE}")))
        up, down = (self._way(way, counts) for way in Way)
        return BedTally(
            path=PathTally(up=up, down=down),
            lateness=Lateness(),
            unread=self._dropped() - self._dropped_before,
            uncounted=("size",),
        )

    def _dropped(self) -> int:
        """By the hosts' own devices, because the emulated processor was too slow."""
        return sum(
            transmit_drops(host.namespace, host.interface) for host in (self.client, self.server)
        )

    def _way(self, way: Way, counts: dict[str, int]) -> WayTally:
        device = _HOP.leaves_by(way)
        queues = counts_of(json.loads(self._tell(f"tc -s -j qdisc show dev {device}")))
        if queues is None:
            sent = self._sent()[way] - self._sent_before[way]
            link = Tally(offered=sent, delivered=sent)
        else:
            link = queues.tally()
        return WayTally(
            link=link,
            blocked=counts.get(f"blocked {way}", 0),
            policed=counts.get(f"policed {way}", 0),
            too_big=counts.get(f"too big {way}", 0),
        )

    def _count_anew(self) -> None:
        self._sent_before = self._sent()
        self._dropped_before = self._dropped()

    def _sent(self) -> dict[Way, int]:
        """Packets that left the machine, for a direction without a qdisc to count them."""
        table = self._tell("cat /proc/net/dev")
        return {way: transmitted(table, _HOP.leaves_by(way) or "") for way in Way}

    def _ends(self) -> Ends:
        client, server = self.client, self.server
        return Ends(client=(client.ipv4, client.ipv6), server=(server.ipv4, server.ipv6))

    def _run(self, commands: tuple[Command, ...]) -> None:
        # At once: a script costs the emulated processor more than a line of it. What it said last
        # is of the line that was refused.
        script = "\n".join(f"echo {_NEXT}\n{shell(command)}" for command in commands)
        try:
            self.machine.run(script)
        except RefusedLineError as error:
            *before, said = str(error).split(_NEXT)
            raise _refusal(shell(commands[len(before) - 1]), said.strip()) from None

    def _tell(self, script: str) -> str:
        try:
            return self.machine.run(script)
        except RefusedLineError as error:
            raise _refusal(script, str(error)) from None

    def _end_programs(self) -> None:
        self.client.end_programs()
        self.server.end_programs()

    def close(self) -> None:
        """End the programs started on the hosts, then the machine, then the hosts."""
        if self._final is None:
            with contextlib.suppress(ImpairmentError):
                self._final = self.tally()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def _whole(profile: Profile, ends: Ends) -> Plan:
    """Its lines; ImpairmentError if some of it is left out."""
    lines = plan(profile, _HOP, ends=ends)
    if lines.cannot:
        raise ImpairmentError(
            f"tc cannot do the profile {profile.name} whole: {'; '.join(lines.cannot)}"
        )
    return lines


def _refusal(script: str, said: str) -> ImpairmentError:
    return ImpairmentError(f"The machine's kernel refused `{script}`: {said}")
