"""The composition root: both doors, one app, one event loop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

from aioquic.quic.configuration import QuicConfiguration

from fallback import ChunkDoor, TcpLimits, TcpListener
from quicserver.handover import Estate
from quicserver.limits import DoorLimits
from quicserver.listener import QuicListener
from quicserver.sockets import BoundSockets, PortInUse, bind_all
from tenuto.errors import ErrorCode, RequestError
from tenuto.host import SessionHost
from tenuto.keyfiles import load_keys
from tenuto.policy import AttachRate, QuicShare
from tenuto.settings import ServerSettings
from tenuto.sources import (
    MediaFolder,
    PumpTally,
    StandardInput,
    shared_engine,
    shared_readers,
)
from tenuto.telemetry.events import (
    CertificateKept,
    CertificateReplaced,
    DoorOpened,
    Event,
    ServerStopped,
    SourceOffPace,
)
from tenuto.telemetry.metrics import Metrics, Reading, counters
from tenuto.tls import (
    CertificateKeeper,
    DevCertificates,
    ServerCertificate,
    install,
    server_context,
)
from tenuto.tls import CertificateReplaced as PairReplaced
from tenuto.web import WebOptions, create_app
from tenuto.web.authority import Authority, Turnstile

__all__ = ["Server", "check"]

_CERTIFICATE_CHECK = 2.0

_LAST_ORDERS = 0.5
"""Seconds that sources have for their `finally` once the grace is over."""

EXPECTED_RESTART = 1.0
"""Seconds after which a listener who is told that we drain may find somebody again."""

_PORT_POLL = 0.05


class Server:
    """Both doors of one process.

    `start` raises `OperatorError` for whatever the operator must mend; `stop` returns within
    the grace and a second.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        on_event: Callable[[Event], None] = lambda event: None,
        inherited: Estate | None = None,
    ) -> None:
        self.settings = settings
        self.port = 0
        """The port really bound, for UDP and TCP alike."""
        self.addresses: list[str] = []
        self._on_event = on_event
        self._inherited = inherited or Estate()
        self._bound = BoundSockets()
        self._draining = False
        self._started = time.monotonic()
        self._quic: QuicListener | None = None
        self._stdin: StandardInput | None = None
        self._metrics = Metrics(self._read_metrics)

    async def start(self) -> None:
        settings = self.settings
        self._authority, self._keeper = _prepare(settings)
        self._door_limits = DoorLimits(
            max_connections=settings.max_connections,
            max_half_open=settings.max_half_open,
            max_half_open_per_address=settings.max_half_open_per_address,
            idle_timeout=settings.idle_timeout,
        )
        self._stdin = self._standard_input()
        self._tcp_limits = TcpLimits(max_connections=settings.max_connections)
        self._bound = await self._bind()
        self.port = self._bound.port
        self.host = SessionHost(
            limits=settings.limits,
            max_sessions=settings.max_sessions,
            max_held=settings.max_held,
            on_event=self._on_event,
            first_sequence=settings.first_sequence,
            attach_rate=settings.attach_rate,
            node=settings.node,
            peers=settings.peers,
        )
        self._turnstile = Turnstile(
            AttachRate(settings.attach_rate, settings.attach_burst),
            clock=self.host.now,
            on_event=self._on_event,
        )
        await self._open_doors(self._bound)
        self._checking = asyncio.create_task(self._check_certificates())
        self._warming = asyncio.create_task(_warm_engine())

    async def stop(self, estate: Estate | None = None) -> None:
        """Tell every listener, give them the grace, end the rest; ports are free afterwards.

        A successor goes on with the `estate`: who knocks meanwhile is put into it.
        """
        if self._draining:
            return
        self._draining = True
        began = time.monotonic()
        sessions = len(self.host)
        self._checking.cancel()
        self._warming.cancel()
        self._tcp.stop_accepting()
        if self._quic is not None:
            self._quic.stop_accepting()
            self._quic.goaway()
        self.host.stop_readers(self._farewell)
        if self._stdin is not None:
            self._stdin.refuse(self._farewell(0))
        grace = self.settings.grace
        await asyncio.gather(self._tcp.close(grace), self._drain_quic(began + grace))
        await self.host.close(_LAST_ORDERS)
        if estate is not None and self._quic is not None:
            estate.knocks = self._quic.knocks.waiting(self.host.now())
        self._on_event(ServerStopped(sessions, time.monotonic() - began))

    def abort(self) -> None:
        """End at once what `stop` has left, and free the ports."""
        self._tcp.abort()
        if self._quic is not None:
            self._quic.close()

    def why_not_restart(self) -> str:
        """What a restart in place would lose beyond the sessions; empty for nothing."""
        if self._stdin is not None:
            return "what was read of standard input cannot be handed over: stop and start instead"
        return ""

    def keep_sockets(self) -> list[socket.socket]:
        """Our bound sockets once more: these stay open and bound when `stop` closes the doors."""
        return [each.dup() for each in (*self._bound.udp, *self._bound.tcp)]

    def _farewell(self, number: int) -> RequestError:
        """What listener `number` is told: they come back one after the other, as the successor
        lets them in.
        """
        wait = EXPECTED_RESTART + number / self.settings.attach_rate
        return RequestError(
            ErrorCode.DRAINING,
            "this server is about to stop",
            remedy="resume on another or in a few seconds",
            detail={"retry_after": round(wait, 3)},
        )

    # Parts

    async def _bind(self) -> BoundSockets:
        """Where another process has the port, wait for it as long as we were told."""
        deadline = time.monotonic() + self.settings.wait_for_port
        while True:
            try:
                return bind_all(
                    self.settings.hosts,
                    self.settings.port,
                    udp=self.settings.quic.percent > 0,
                    door=self._door_limits,
                    tcp=self._tcp_limits,
                    on_event=self._on_event,
                    inherited=self._inherited.sockets,
                )
            except PortInUse:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_PORT_POLL)

    async def _open_doors(self, bound: BoundSockets) -> None:
        settings = self.settings
        app = create_app(
            self.host,
            WebOptions(
                media=MediaFolder(settings.media) if settings.media else None,
                stdin=self._stdin,
                test_sources=settings.test_sources,
                offer=self._offer,
                certificate_hashes=self._hashes,
                names=lambda: {name.lower() for name in self._keeper.certificate.names},
                draining=lambda: self._draining,
                metrics=self._metrics.render,
                health=self._health,
                authority=self._authority,
                turnstile=self._turnstile,
            ),
            on_event=self._on_event,
        )
        tls = server_context(self._keeper.certificate)
        self._keeper.subscribe(lambda pair: install(tls, pair))
        door = ChunkDoor(
            app, write_deadline=self._tcp_limits.write_deadline, on_event=self._on_event
        )
        self._tcp = TcpListener(door, tls, self._tcp_limits, on_event=self._on_event)
        self._tcp.listen(bound.tcp)
        for each in bound.tcp:
            self._opened("tcp", each.getsockname(), self._tcp_limits.write_buffer)
        if not bound.udp:
            return
        configuration = QuicConfiguration(is_client=False)
        self._keeper.subscribe(lambda pair: _install_quic(configuration, pair))
        self._quic = QuicListener(
            app,
            configuration,
            self._door_limits,
            reset_key=self._keeper.certificate.derive_key(b"tenuto stateless reset"),
            on_event=self._on_event,
        )
        self._quic.listen(bound.udp)
        self._quic.open_to(self._inherited.knocks)
        for each in bound.udp:
            granted = each.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            self._opened("quic", each.getsockname(), granted)

    def _standard_input(self) -> StandardInput | None:
        settings = self.settings
        if settings.stdin is None:
            return None
        return StandardInput(
            settings.stdin,
            settings.stdin_format,
            on_off_pace=lambda announced, measured: self._on_event(
                SourceOffPace("stdin", announced, round(measured))
            ),
        )

    def _opened(self, door: str, address: tuple[str, int], buffer: int) -> None:
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        shown = f"{host}:{address[1]}"
        if shown not in self.addresses:
            self.addresses.append(shown)
        self._on_event(DoorOpened(door, shown, buffer))

    async def _drain_quic(self, until: float) -> None:
        if self._quic is None:
            return
        # Nobody tells when the last ACK came.
        while (self._quic.requests or self._quic.held) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        self._quic.close()

    async def _check_certificates(self) -> None:
        while True:
            await asyncio.sleep(_CERTIFICATE_CHECK)
            # A disk that hangs must not hold up the loop with it.
            await shared_readers().read(self._keeper.look)
            for event in self._keeper.check(datetime.now(UTC)):
                if isinstance(event, PairReplaced):
                    pair = event.certificate
                    self._on_event(
                        CertificateReplaced(pair.sha256.hex(), pair.not_after.isoformat())
                    )
                else:
                    self._on_event(CertificateKept(event.message))

    # What the routes ask

    def _offer(self) -> tuple[QuicShare, int] | None:
        return (self.settings.quic, self.port) if self._quic is not None else None

    def _hashes(self) -> list[str]:
        hashes = self._keeper.hashes()
        known = [hashes.current] + ([hashes.upcoming] if hashes.upcoming else [])
        return [base64.b64encode(each).decode() for each in known]

    def _health(self) -> dict[str, object]:
        doors: dict[str, object] = {"tcp": self._tcp.connections}
        if self._quic is not None:
            doors["quic"] = self._quic.connections
        return {
            "doors": doors,
            "tasks": len(asyncio.all_tasks()),
            "uptime": round(time.monotonic() - self._started, 3),
        }

    def _read_metrics(self) -> list[Reading]:
        host = self.host
        readings = [
            Reading("sessions", "sessions alive", len(host)),
            Reading("listeners", "listeners attached", host.listeners),
            Reading("held_bytes", "audio that sessions hold or may come to hold", host.held),
            Reading("tick_lag_seconds", "worst lateness of the tick", host.tick.worst_lag),
            Reading(
                "certificate_days_left",
                "days until the certificate expires",
                self._keeper.days_left(datetime.now(UTC)),
            ),
            Reading("tcp_open_connections", "TCP connections open", self._tcp.connections),
            Reading("files_busy", "files being opened or read", shared_readers().busy),
            Reading("attaches_refused", "attaches beyond the rate", self._turnstile.refused, True),
            Reading("tokens_refused", "requests not authorised", self._authority.refused, True),
            *counters("host", asdict(host.tally)),
            *counters("files", asdict(shared_readers().tally)),
            *counters("tcp", asdict(self._tcp.tally)),
            *counters("stdin", asdict(self._stdin.tally if self._stdin else PumpTally())),
        ]
        if self._quic is not None:
            quic = self._quic
            readings += [
                Reading("quic_open_connections", "QUIC connections open", quic.connections),
                Reading("quic_half_open", "QUIC handshakes unfinished", quic.half_open),
                Reading("quic_held_bytes", "bytes sent and not acknowledged", quic.held),
                *counters("quic", asdict(quic.tally)),
                *counters("quic", {"kernel_drops": quic.kernel_drops, **quic.afterlife}),
            ]
        return readings


async def _warm_engine() -> None:
    """Start the speech engine, so that the first sentence does not wait for it."""
    # Not installed is no fault of a server of files and tones; who asks for speech is told.
    with contextlib.suppress(RequestError):
        await shared_engine().voices()


def check(settings: ServerSettings) -> None:
    """Raises `OperatorError` where a server would not start, for another reason than its port."""
    _prepare(settings)


def _prepare(settings: ServerSettings) -> tuple[Authority, CertificateKeeper]:
    """What files say of who we are and whom we trust."""
    return Authority(load_keys(settings.token_keys)), _keeper(settings)


def _keeper(settings: ServerSettings) -> CertificateKeeper:
    now = datetime.now(UTC)
    if settings.certificate is not None and settings.key is not None:
        return CertificateKeeper.of_files(settings.certificate, settings.key, now)
    return CertificateKeeper.of_dev(DevCertificates(settings.certificates_folder), now)


def _install_quic(configuration: QuicConfiguration, pair: ServerCertificate) -> None:
    """Handshakes that begin from now on use this pair."""
    configuration.certificate = pair.leaf
    configuration.certificate_chain = list(pair.intermediates)
    configuration.private_key = pair.private_key
