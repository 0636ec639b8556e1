"""The whole examination, one question after the other; what is known is always at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from tenuto.client import Address, Target, Trust
from tenuto.client.errors import LegError
from tenuto.client.target import resolve
from tenuto.doctor.certificates import certificate_seen, untrusted
from tenuto.doctor.diagnosis.evidence import Carried, Evidence, Seen, ServerSeen, Silence, Transport
from tenuto.doctor.diagnosis.mtu import next_mtu
from tenuto.doctor.diagnosis.nat import silences_up_to, translated
from tenuto.doctor.diagnosis.on_udp import KEEPS_PACE, best_carried, least_packet, reach_of
from tenuto.doctor.diagnosis.reach import Reach, Udp, next_reach
from tenuto.doctor.exchange import NEED, Look, carry, look_quic, look_tcp, outside, see
from tenuto.doctor.nat import watch_nat
from tenuto.doctor.probing import Probing, udp_socket

__all__ = ["DEFAULT_NAT", "MOST_NAT", "Examination", "Plan"]

DEFAULT_NAT = 35.0
"""Seconds of silence that a NAT is tried with unless something else is asked for."""

MOST_NAT = 310.0

_NAME_WITHIN = 10.0
_LONGEST = 120.0
"""Seconds after which the rest is left out, beside the silences asked for."""

_HANDSHAKES = 3
_VOICE, _QUICK_VOICE = 2.5, 1.0
_TONE = "/v1/speak?source=tone&seconds=6&level=0.1&lead=0.2&chunk=1"

_PADDING = 1280
"""Makes a request larger than QUIC's least packet, and still one packet of Ethernet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`nat` is the longest silence to try, 0 for none; `quick` looks at everything but silences,
    and less long.
    """

    nat: float = DEFAULT_NAT
    quick: bool = False

    @property
    def silences(self) -> float:
        return 0.0 if self.quick else self.nat


class Examination:
    """`evidence` grows while `run` is under way, and stays when it is cancelled."""

    def __init__(
        self,
        target: Target,
        trust: Trust,
        plan: Plan,
        *,
        on_step: Callable[[str, float], None] = lambda what, seconds: None,
    ) -> None:
        """`on_step` is told what comes next, and about how many seconds it takes."""
        self.evidence = Evidence(target.host, target.port, nat_limit=plan.silences)
        self._target = target
        self._trust = trust
        self._plan = plan
        self._on_step = on_step
        self._address: Address | None = None
        self._probing: Probing | None = None
        self._probed = ""

    async def run(self) -> Evidence:
        """Raises `OperatorError` where the CA's file cannot be read."""
        self._trust.tls_context()
        try:
            async with asyncio.timeout(_LONGEST + self._plan.silences):
                await self._run()
        except TimeoutError:
            self._keep_probes()
            self._skip(f"It took longer than {_LONGEST:g} s: the rest was left out.")
        except asyncio.CancelledError:
            self._keep_probes()
            self._note(interrupted=True)
            raise
        return self.evidence

    async def _run(self) -> None:
        addresses = await self._resolve()
        if not addresses:
            return
        await self._meet(addresses)
        await self._reach()
        reach = reach_of(self.evidence)
        assert reach is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask_more(reach))
            group.create_task(self._quic(reach))
        reach = reach_of(self.evidence) or reach
        await self._voice(reach)
        # A voice tells a throttle from a slow line.
        reach = reach_of(self.evidence) or reach
        if reach.udp is Udp.OPEN and reach.answered:
            await self._mtu(reach)
        try:
            await self._nat(reach)
        except* OSError as errors:
            first = errors.exceptions[0]
            self._skip(f"NAT was not examined: no UDP socket can be had ({first}).")

    def _note(self, **known: object) -> None:
        self.evidence = replace(self.evidence, **known)  # type: ignore[arg-type]

    def _skip(self, why: str) -> None:
        self._note(skipped=(*self.evidence.skipped, why))

    # Names and TCP

    async def _resolve(self) -> tuple[Address, ...]:
        self._on_step("looking up the name", 0.2)
        try:
            async with asyncio.timeout(_NAME_WITHIN):
                return await resolve(self._target)
        except LegError as error:
            self._note(no_name=error.reason)
        except TimeoutError:
            self._note(no_name=f"no address for {self._target.host} within {_NAME_WITHIN:g} s")
        return ()

    async def _meet(self, addresses: tuple[Address, ...]) -> None:
        """Take the first address to which TCP connects, else the first of all."""
        self._on_step("TCP and TLS", 0.5)
        look: Look | None = None
        for address in addresses:
            self._address = address
            look = await look_tcp(address, self._target, self._trust, "/v1/address")
            if look.handshake.connected is not None:
                break
        else:
            self._address = addresses[0]
        assert look is not None
        others = tuple(str(other) for other in addresses if other is not self._address)
        self._note(address=str(self._address), others=others)
        refused = None
        if untrusted(look):
            refused = look.handshake
            self._trust = Trust(insecure=True)
            look = await look_tcp(self._here, self._target, self._trust, "/v1/address")
        self._note(
            handshakes=(look.handshake,),
            certificate=certificate_seen(look, refused),
            server=_server(look),
        )

    async def _ask_more(self, reach: Reach) -> None:
        if not self._tcp_is_ready:
            return
        for path in ("/v1/transport", "/healthz")[: _HANDSHAKES - 1]:
            look = await look_tcp(self._here, self._target, self._trust, path)
            self._note(handshakes=(*self.evidence.handshakes, look.handshake))
            server = self.evidence.server
            if path == "/v1/transport" and server and server.is_tenuto and look.facts:
                quic, port = look.facts.get("quic"), look.facts.get("port")
                server = replace(
                    server,
                    offers_quic=quic if isinstance(quic, bool) else None,
                    quic_port=port if type(port) is int and 0 < port < 65536 else None,
                )
                self._note(server=server)
        if reach.udp is Udp.BLOCKED:
            await self._ask_at_length()

    async def _ask_at_length(self) -> None:
        """Is it UDP that is blocked, or every packet as large as QUIC's?"""
        for _ in range(2):
            look = await look_tcp(
                self._here, self._target, self._trust, "/healthz", padding=_PADDING
            )
            if look.status or look.handshake.secured is None:
                return
            # The same without it, so that it is not the server that is gone.
            look = await look_tcp(self._here, self._target, self._trust, "/healthz")
            if not look.status:
                return
        self._note(large_hangs=True)

    @property
    def _here(self) -> Address:
        assert self._address is not None
        return self._address

    # UDP and QUIC

    async def _reach(self) -> None:
        self._on_step("UDP: a row of probes", 2.0)
        size = least_packet(self.evidence)
        self._probed = "udp"
        self._probing = Probing(self._here)
        self._note(udp=await self._probing.examine(lambda ledger: next_reach(ledger, size)))

    async def _mtu(self, reach: Reach) -> None:
        self._on_step("the largest packet", 1.0)
        size = least_packet(self.evidence)
        self._probed = "mtu"
        self._probing = Probing(self._here)
        found = await self._probing.examine(lambda ledger: next_mtu(ledger, size, reach.loss))
        self._note(mtu=found)

    def _keep_probes(self) -> None:
        """What an interrupted train had found."""
        if self._probing is not None and self._probing.ledger.probes:
            self._note(**{self._probed: self._probing.ledger})

    async def _quic(self, reach: Reach) -> None:
        # Even where no probe was answered: a firewall may know the versions of QUIC, and drop
        # what is of none.
        self._on_step("QUIC", 0.5)
        tries = _HANDSHAKES if reach.udp is Udp.OPEN else 1
        for _ in range(tries):
            look = await look_quic(self._here, self._target, self._trust, "/v1/address")
            self._note(handshakes=(*self.evidence.handshakes, look.handshake))
            server = self.evidence.server
            if look.status and (server is None or not server.is_tenuto):
                self._note(server=_server(look))

    @property
    def _quic_is_ready(self) -> bool:
        return any(
            h.transport == "quic" and h.secured is not None for h in self.evidence.handshakes
        )

    @property
    def _tcp_is_ready(self) -> bool:
        return any(h.transport == "tcp" and h.secured is not None for h in self.evidence.handshakes)

    # Voice

    async def _voice(self, reach: Reach) -> None:
        seconds = _QUICK_VOICE if self._plan.quick else _VOICE
        server = self.evidence.server
        tenuto = server is not None and server.is_tenuto
        path = _TONE if tenuto else self._target.request_path()
        need = NEED if tenuto else 0.0
        if not tenuto and path == "/":
            return
        if reach.udp in (Udp.OPEN, Udp.THROTTLED) and self._quic_is_ready:
            await self._carry("quic", path, need, seconds)
        if self._tcp_is_ready:
            await self._carry("tcp", path, need, seconds)
        quic, tcp = best_carried(self.evidence, "quic"), best_carried(self.evidence, "tcp")
        if quic and tcp and need and quic.share < KEEPS_PACE <= tcp.share:
            await self._carry("quic", path, need, seconds)  # It may have met an outage.

    async def _carry(self, transport: Transport, path: str, need: float, seconds: float) -> None:
        self._on_step(f"a voice over {transport.upper()}", seconds)
        carried: Carried = await carry(
            transport, self._here, self._target, self._trust, path, need=need, seconds=seconds
        )
        if need and not carried.need:
            self._skip(f"Voice over {transport.upper()} was not examined: {carried.failure}.")
            return
        self._note(carried=(*self.evidence.carried, carried))

    # NAT

    async def _nat(self, reach: Reach) -> None:
        server = self.evidence.server
        if server is None or not server.is_tenuto:
            return
        if reach.udp is not Udp.OPEN or not self._quic_is_ready:
            self._skip("NAT was not examined: that takes a QUIC that works.")
            return
        self._on_step("NAT", 0.2)
        with udp_socket(self._here) as local:
            seen = await see(self._here, self._target, self._trust, local)
        if seen is None:
            self._skip("NAT was not examined: the server could not be asked over QUIC.")
            return
        self._note(outside=(seen,))
        if not translated(seen):
            return
        self._note(outside=())
        limit = self._plan.silences
        self._on_step("NAT: silences", max(silences_up_to(limit), default=0.0))
        await watch_nat(
            self._here,
            self._target,
            self._trust,
            limit,
            on_seen=self._add_seen,
            on_silence=self._add_silence,
        )

    def _add_seen(self, seen: Seen) -> None:
        self._note(outside=(*self.evidence.outside, seen))

    def _add_silence(self, silence: Silence) -> None:
        self._note(silences=(*self.evidence.silences, silence))


def _server(look: Look) -> ServerSeen | None:
    """What `/v1/address` says of the one who answered it."""
    if look.handshake.secured is None:
        return None
    if outside(look.facts) is not None:
        return ServerSeen(is_tenuto=True)
    why = look.why or f"GET /v1/address: {look.status}"
    return ServerSeen(is_tenuto=False, why_not=why)
