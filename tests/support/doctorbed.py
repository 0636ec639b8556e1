"""A path in virtual time between a doctor's probes and a server that negotiates versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from netem.link import Endpoint, Flow, Packet, Path
from netem.link.refusal import TOO_BIG, Refusal
from netem.profile import Answer, Profile, Way
from tenuto.doctor.diagnosis.evidence import Icmp, IcmpKind, Ledger, Probe
from tenuto.doctor.diagnosis.train import Train, refused, waits_until

__all__ = ["VirtualBed"]

_ANSWER = 28 + 7 + 16 + 8


class VirtualBed:
    """Flies trains; every answer and every error takes the way back."""

    def __init__(self, profile: Profile, seed: int, *, begin: float = 0.0) -> None:
        self.now = begin
        self._path = Path(profile, seed, 0.0)
        self._server = Endpoint("192.0.2.2", 4433)
        self._base = 40000

    def examine(self, decide: Callable[[Ledger], Train | None]) -> Ledger:
        ledger = Ledger()
        while (train := decide(ledger)) is not None:
            ledger = ledger.and_then(self._fly(train))
        self._base += 100
        return ledger

    def _fly(self, train: Train) -> Ledger:
        started = self.now
        probes: list[Probe] = []
        icmp: list[Icmp] = []
        waiting = list(train.orders)
        while True:
            while waiting and started + waiting[0].after <= self.now:
                order = waiting.pop(0)
                probes.append(Probe(order.flow, order.number, order.size, self.now))
                self._offer(Way.UP, len(probes) - 1, order.flow, order.size, probes, icmp)
            self._arrive(probes, icmp)
            if refused(probes, icmp):
                waiting.clear()
            ending = started + waiting[0].after if waiting else waits_until(probes, icmp)
            if not waiting and self.now >= ending:
                return Ledger(tuple(probes), tuple(icmp))
            due = self._path.next_deadline()
            self.now = max(self.now, ending if due is None else min(ending, due))

    def _offer(
        self, way: Way, index: int, flow: int, size: int, probes: list[Probe], icmp: list[Icmp]
    ) -> None:
        client = Endpoint("192.0.2.1", self._base + flow)
        packet = Packet(index.to_bytes(4), size, Flow(17, client, self._server))
        self._send(way, packet, icmp)

    def _send(self, way: Way, packet: Packet, icmp: list[Icmp]) -> None:
        refusal = self._path.offer(way, packet, self.now)
        if isinstance(refusal, Refusal) and way is Way.UP:
            kind = {Answer.REJECT: IcmpKind.PORT, Answer.PROHIBIT: IcmpKind.PROHIBITED}
            flow = packet.flow
            assert isinstance(flow, Flow)
            what = IcmpKind.TOO_BIG if refusal.answer is TOO_BIG else kind[refusal.answer]
            by = str(self._server.address)
            number = flow.client.port - self._base
            icmp.append(Icmp(self.now, number, what, by, refusal.mtu))

    def _arrive(self, probes: list[Probe], icmp: list[Icmp]) -> None:
        for way, packet in self._path.pop_due(self.now):
            index = int.from_bytes(packet.data[:4])
            if way is Way.UP:
                assert packet.flow is not None
                self._send(Way.DOWN, packet._replace(size=_ANSWER), icmp)
            elif index < len(probes) and probes[index].answered is None:
                probes[index] = replace(probes[index], answered=self.now)
