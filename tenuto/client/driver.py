"""Drives one client connection: its socket, its timer, its end."""

from __future__ import annotations

import asyncio
import errno
import math
import socket
from collections import deque
from collections.abc import Callable

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent

from tenuto.client.errors import FailureKind, LegError
from tenuto.client.target import Address
from tenuto.client.udp import UdpSocket
from tenuto.quic import Connection, ReceiveWindow

__all__ = ["PING_INTERVAL", "ClientConnection", "QuicDriver"]

PING_INTERVAL = 1.0
"""Seconds. A client that only receives is lost behind a NAT that forgets it, and its record
of sent ACKs grows until the peer acknowledges something."""

DOZE_INTERVAL = 5.0
"""Seconds, of a client to which nothing is sent for long: half of what the connection lives."""

DOUBT = 0.1
"""Seconds without a packet after which the path is in doubt, and PINGs are padded: a NAT may
have given us another port, and what the server may send to it is three times what we sent."""

_PROBES = (0.0, 0.05, 0.12, 0.2)
"""Seconds after a rebinding at which padded PINGs leave, whichever of them are lost."""

_LINGER = 1.0
"""Seconds that an old socket is read on: what was on its way still arrives there."""

_MOST_OLD = 2
"""Old sockets at a time."""

_STALE_AFTER = 1.0
"""Seconds between two rebindings that nobody asked for but a socket whose sends fail."""

# The system's words for a moment: another port does not help.
_PASSING = frozenset({errno.ENOBUFS, errno.ENOMEM})

# Stepping exactly onto aioquic's loss timer can find nothing due and the same timer again.
_PAST = 1e-6

# RFC 9001 section 4.8: an alert of TLS is 0x100 + its number (RFC 8446 section 6).
_CERTIFICATE_ALERTS = frozenset(0x100 + alert for alert in (42, 43, 44, 45, 46, 48))
_NO_APPLICATION_PROTOCOL = 0x100 + 120


class ClientConnection(Connection):
    """A connection that tells at once when it closes itself; upstream after three PTOs."""

    def __init__(self, *, configuration: QuicConfiguration, window: ReceiveWindow) -> None:
        super().__init__(configuration=configuration, window=window)
        self.closed_because: ConnectionTerminated | None = None

    def close(
        self, error_code: int = 0, frame_type: int | None = None, reason_phrase: str = ""
    ) -> None:
        if self.closed_because is None:
            self.closed_because = ConnectionTerminated(error_code, frame_type, reason_phrase)
        super().close(error_code, frame_type, reason_phrase)


class QuicDriver:
    """The shell around a sans-I/O connection.

    `on_event` gets each QUIC event; `on_lost` is called once, when nothing more will come.
    `after_burst` runs before each transmission, so that whatever the events led to leaves
    in the same packets.
    """

    def __init__(
        self,
        connection: ClientConnection,
        address: Address,
        *,
        on_event: Callable[[QuicEvent], None],
        after_burst: Callable[[], None],
        on_lost: Callable[[LegError], None],
        local: socket.socket | None = None,
    ) -> None:
        self._connection = connection
        self._address = address
        self._on_event = on_event
        self._after_burst = after_burst
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._ping_at: float | None = None
        self._ping_every = PING_INTERVAL
        self._probes: deque[float] = deque()
        self._over = False
        self._stale = False
        self._narrow = False
        self._rebound_at = -math.inf
        self._old: dict[UdpSocket, asyncio.TimerHandle] = {}
        self._socket = UdpSocket(address, self._burst, self._socket_failed, local)

    def start(self) -> None:
        """Send the first flight."""
        self._connection.connect(self._address.sockaddr, self._loop.time())
        self.transmit()

    def rest(self, quiet: bool) -> None:
        """No PINGs of ours from now on; or one at once and each second."""
        if quiet:
            self._ping_at = None
            self._probes.clear()
            self._arm()
        else:
            self._beat(PING_INTERVAL)
            self.ping()

    def doze(self) -> None:
        """PINGs that keep the connection, and a NAT's memory of it."""
        self._beat(DOZE_INTERVAL)
        self._arm()

    def _beat(self, every: float) -> None:
        self._ping_every = every
        self._ping_at = self._loop.time() + every

    def ping(self) -> None:
        """One PING now, from another port where the last sends failed."""
        now = self._loop.time()
        if self._over or not self._connection.established:
            return
        if self._stale and now - self._rebound_at >= _STALE_AFTER:
            self.rebind()
            return
        self._probe(now)
        self.transmit()

    def rebind(self) -> bool:
        """Another port and connection ID, announced four times.

        False before it is allowed, and where no way leads to this address now, perhaps for the
        network has no more of its family; there the next ping tries again.
        """
        if self._over or not self._connection.may_move:
            return False
        now = self._rebound_at = self._loop.time()
        try:
            fresh = UdpSocket(self._address, self._burst, self._socket_failed)
        except OSError:
            self._stale = True
            return False
        self._stale = self._narrow = False
        new_path = fresh.host != self._socket.host
        self._set_aside(self._socket)
        self._socket = fresh
        self._connection.move(new_path=new_path)
        self._probes = deque(now + after for after in _PROBES)
        self._guarded(lambda: None)
        return True

    def _set_aside(self, old: UdpSocket) -> None:
        """Read it on for a moment, whatever becomes of it."""
        old.ignore_errors()
        while len(self._old) >= _MOST_OLD:
            self._let_go(next(iter(self._old)))
        self._old[old] = self._loop.call_later(_LINGER, self._let_go, old)

    def _let_go(self, old: UdpSocket) -> None:
        self._old.pop(old).cancel()
        old.close()

    def transmit(self) -> None:
        """Send what is due and set the timer anew."""
        if self._over:
            return
        for datagram, _ in self._connection.datagrams_to_send(self._loop.time()):
            self._socket.send(datagram)
        self._notice_close()
        self._arm()

    def close(self, error_code: int) -> None:
        """Tell the peer once and let go of the socket."""
        if self._over:
            return
        self._over = True
        self._connection.close(error_code=error_code)
        for datagram, _ in self._connection.datagrams_to_send(self._loop.time()):
            self._socket.send(datagram)
        self._release()

    def _burst(self, datagrams: list[bytes]) -> None:
        now = self._loop.time()

        def receive() -> None:
            for datagram in datagrams:
                self._connection.receive_datagram(datagram, self._address.sockaddr, now)

        self._guarded(receive)

    def _fire(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = self._connection.get_timer()
        if due is not None and now + _PAST >= due:
            now = max(now, due + _PAST)
            self._guarded(lambda: self._connection.handle_timer(now))
        else:
            self._guarded(lambda: None)

    def _guarded(self, step: Callable[[], object]) -> None:
        """Take a step with the connection, hand on its events, then transmit once."""
        if self._over:
            return
        try:
            step()
            while (event := self._connection.next_event()) is not None:
                if isinstance(event, ConnectionTerminated):
                    self._lose(self._ended(event))
                    return
                self._on_event(event)
            self._after_burst()
        except Exception as error:  # noqa: BLE001 - whatever a packet makes upstream raise
            self._lose(LegError(FailureKind.PROTOCOL, f"{self._address} sent nonsense: {error!r}"))
            return
        self._ping()
        self.transmit()

    def _ended(self, event: ConnectionTerminated) -> LegError:
        if self._connection.was_reset:
            # Its server crashed or was started anew: who asks again is answered at once.
            return LegError(FailureKind.CLOSED, f"{self._address} has forgotten the connection")
        return _explain(event, self._address, by_us=False)

    def _ping(self) -> None:
        """The probes of a new path and the heartbeat, where they are due."""
        now = self._loop.time()
        if self._ping_at is not None and now >= self._ping_at:
            self._ping_at = now + self._ping_every
            self._probe(now)
        if self._probes and now >= self._probes[0]:
            while self._probes and now >= self._probes[0]:
                self._probes.popleft()
            self._connection.probe(padded=not self._narrow)

    def _probe(self, now: float) -> None:
        doubtful = self._connection.unheard(now) >= DOUBT
        self._connection.probe(padded=doubtful and not self._narrow)

    def _arm(self) -> None:
        if self._over:
            return
        if self._timer is not None:
            self._timer.cancel()
        probe_at = self._probes[0] if self._probes else None
        due = (self._connection.get_timer(), self._ping_at, probe_at)
        moments = [moment for moment in due if moment is not None]
        self._timer = self._loop.call_at(min(moments), self._fire) if moments else None

    def _notice_close(self) -> None:
        closed = self._connection.closed_because
        if closed is not None and not self._over:
            self._lose(_explain(closed, self._address, by_us=True))

    def _socket_failed(self, error: OSError) -> None:
        if isinstance(error, ConnectionRefusedError | ConnectionResetError):  # Windows says reset
            # The kernel matches ICMP to our socket: the process behind the port has gone.
            gone = self._connection.established
            words = "is gone: its port refuses" if gone else "refused"
            self._lose(LegError(FailureKind.REFUSED, f"{self._address} {words}"))
        elif not self._connection.established:
            reason = f"{self._address} cannot be reached: {error.strerror or error}"
            self._lose(LegError(FailureKind.UNREACHABLE, reason))
        elif error.errno == errno.EMSGSIZE:
            # 1,200 bytes are what QUIC needs: what is smaller still passes, pings among it.
            self._narrow = True
        elif error.errno not in _PASSING:
            # Perhaps a network change: the next ping is sent from another socket.
            self._stale = True

    def _lose(self, failure: LegError) -> None:
        if not self._over:
            self._over = True
            self._release()
            self._on_lost(failure)

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._socket.close()
        for old in list(self._old):
            self._let_go(old)


def _explain(event: ConnectionTerminated, address: Address, *, by_us: bool) -> LegError:
    """A clause for people from an error code (RFC 9000 section 20, RFC 9114 section 8.1)."""
    words = event.reason_phrase or f"error 0x{event.error_code:x}"
    if event.error_code in _CERTIFICATE_ALERTS and by_us:
        return LegError(
            FailureKind.UNTRUSTED, f"the certificate of {address} is not trusted ({words})"
        )
    if event.error_code == _NO_APPLICATION_PROTOCOL:
        return LegError(FailureKind.PROTOCOL, f"{address} speaks QUIC, but not HTTP/3")
    if event.reason_phrase == "Idle timeout":
        return LegError(FailureKind.TIMEOUT, f"{address} has fallen silent")
    if by_us:
        return LegError(FailureKind.PROTOCOL, f"{address} broke the protocol ({words})")
    return LegError(FailureKind.CLOSED, f"{address} closed the connection ({words})")
