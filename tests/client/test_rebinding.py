"""Another port in mid-stream, against the real server: asked for, unannounced, forced by errors."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import quicserver.listener
import tenuto.client.driver
import tenuto.client.quic
from netem.drivers.relay import Relay
from netem.profile import Conditions, Nat, Profile
from quicserver.app import Server
from tenuto.client.errors import FailureKind, LegError
from tenuto.client.exchange import Request
from tenuto.client.quic import QuicLeg
from tenuto.client.target import Address
from tenuto.client.tcp import connect_tcp
from tenuto.client.trust import Trust
from tenuto.client.udp import UdpSocket
from tests.conftest import StartServer
from tests.support.watched import Watched, listen

ROOT = Path(__file__).parents[2]
RTT_60 = Conditions(delay=0.030)
PATH = "/v1/speak?source=counting&lead=0.2&frames="


def relayed(server: Server, nat: Nat | None = None) -> Relay:
    profile = Profile(name="rtt-60", up=RTT_60, down=RTT_60)
    return Relay(dataclasses.replace(profile, nat=nat), 1, ("127.0.0.1", server.port))


def migrations(server: Server) -> int:
    assert server._quic is not None
    return server._quic.tally.migrations


async def test_a_port_left_behind_every_300_ms_loses_nothing(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    moved = []

    def meanwhile(watched: Watched) -> None:
        loop = asyncio.get_running_loop()
        for number in range(1, 6):
            loop.call_later(0.3 * number, lambda: moved.append(watched.leg.rebind()))

    with relayed(server) as relay:
        watched = await listen(relay.address, ca_file, PATH + "100", meanwhile)
        flows = relay.counts().flows
    assert moved == [True] * 5
    assert (len(watched.sequences), watched.lost) == (100, 0)
    assert watched.longest_gap <= 0.060 + 0.060
    assert flows == 6
    assert migrations(server) == 5


@pytest.mark.parametrize("moments", [(0.5, 0.8, 1.1, 1.4, 1.7), (0.045,), (0.075,), (0.105,)])
async def test_a_nat_that_forgets_us_loses_nothing(
    moments: tuple[float, ...], start_server: StartServer, ca_file: Path
) -> None:
    """In mid-stream, and at each step of the handshake."""
    server = await start_server()
    frames = 30 + round(moments[-1] * 50)
    with relayed(server, Nat(rebind_at=moments)) as relay:
        watched = await listen(relay.address, ca_file, f"{PATH}{frames}")
    assert (len(watched.sequences), watched.lost) == (frames, 0)
    assert watched.longest_gap <= 0.300


@asynccontextmanager
async def playing(
    server: Server, ca: Path, local: Any = None
) -> AsyncIterator[tuple[QuicLeg, Callable[[], Any]]]:
    """A leg whose endless answer is read; and what reads one frame or so."""
    address = Address(socket.AF_INET, ("127.0.0.1", server.port))
    leg = QuicLeg(address, "localhost", Trust(ca), local=local)
    try:
        await asyncio.wait_for(leg.connect(), 5)
        request = Request("GET", "localhost", PATH + "5000", ())
        assert (await leg.request(request)).status == 200
        yield leg, leg.read
    finally:
        await leg.aclose()


async def test_before_the_handshake_there_is_no_moving(ca_file: Path) -> None:
    leg = QuicLeg(Address(socket.AF_INET, ("127.0.0.1", 9)), "localhost", Trust(ca_file))
    leg.ping()
    assert leg.rebind() is False
    await leg.aclose()
    assert leg.rebind() is False
    leg.ping()


async def test_without_a_network_the_next_ping_tries_again(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start_server()
    monkeypatch.setattr(tenuto.client.driver, "_STALE_AFTER", 0.0)

    def unreachable(*_: object) -> UdpSocket:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    async with playing(server, ca_file) as (leg, read):
        await read()
        monkeypatch.setattr(tenuto.client.driver, "UdpSocket", unreachable)
        for _ in range(100):
            assert not leg.rebind()
            leg.ping()
        await read()
        monkeypatch.setattr(tenuto.client.driver, "UdpSocket", UdpSocket)
        leg.ping()
        await asyncio.sleep(0.1)
        for _ in range(10):
            await read()
    assert migrations(server) == 1


class Shaky(socket.socket):
    """Fails `failures` times before it does what it should, as Windows' sockets do."""

    failures: list[OSError]
    sending: bool = False

    def dup(self) -> Shaky:
        made = Shaky(fileno=os.dup(self.fileno()))
        made.failures = self.failures
        made.sending = self.sending
        return made

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop()

    def recv(self, *given: Any) -> bytes:
        self._fail()
        return super().recv(*given)

    def recvfrom(self, *given: Any) -> Any:
        self._fail()
        return super().recvfrom(*given)

    def send(self, *given: Any) -> int:
        if self.sending:
            self._fail()
        return super().send(*given)


def shaky(failures: list[OSError]) -> Shaky:
    made = Shaky(socket.AF_INET, socket.SOCK_DGRAM)
    made.failures = failures
    return made


@pytest.mark.parametrize("number", [errno.ENETUNREACH, errno.EMSGSIZE, errno.ENOBUFS, errno.EPERM])
async def test_a_thousand_errors_of_its_socket_do_not_end_a_leg(
    number: int, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    failures: list[OSError] = []
    with shaky(failures) as local:
        async with playing(server, ca_file, local) as (leg, read):
            await read()
            failures += [OSError(number, os.strerror(number)) for _ in range(1000)]
            while failures:
                leg.ping()
                await read()
            for _ in range(10):
                await read()


async def test_a_refusal_of_the_peers_host_ends_a_leg_in_words(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    failures: list[OSError] = []
    with shaky(failures) as local:
        async with playing(server, ca_file, local) as (leg, read):
            failures += [ConnectionResetError(errno.ECONNRESET, "reset")] * 1000
            with pytest.raises(LegError, match="its port refuses") as lost:
                while True:
                    await read()
            assert lost.value.kind is FailureKind.REFUSED
            leg.ping()
            assert leg.rebind() is False


async def test_a_server_survives_a_thousand_errors_of_its_socket(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a datagram to a client's closed port becomes on Windows."""
    failures: list[OSError] = []
    bind = quicserver.listener.bind_udp

    def bind_shaky(*given: Any) -> Shaky:
        made = Shaky(fileno=bind(*given).detach())
        made.setblocking(False)
        made.failures = failures
        return made

    monkeypatch.setattr("quicserver.sockets.bind_udp", bind_shaky)
    server = await start_server()
    async with playing(server, ca_file) as (_, read):
        for kind in (ConnectionResetError, ConnectionRefusedError):
            failures += [kind(errno.ECONNRESET, "reset")] * 1000
            while failures:
                await read()
        for _ in range(10):
            await read()


async def test_at_rest_a_leg_sends_nothing_of_itself(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenuto.client.driver, "PING_INTERVAL", 0.05)
    server = await start_server()
    with relayed(server) as relay:
        address = Address(socket.AF_INET, relay.address)
        leg = QuicLeg(address, "localhost", Trust(ca_file))
        await leg.connect()
        await leg.request(Request("GET", "localhost", "/v1/speak?source=counting&frames=1", ()))
        while await leg.read():
            pass
        leg.rest(True)
        await asyncio.sleep(0.2)
        sent = relay.tally().up.offered
        await asyncio.sleep(0.3)
        assert relay.tally().up.offered == sent
        leg.rest(False)
        await asyncio.sleep(0.3)
        assert relay.tally().up.offered > sent
        # Somebody else has paused: what says that it is over must find the connection.
        monkeypatch.setattr(tenuto.client.driver, "DOZE_INTERVAL", 0.5)
        leg.doze()
        await asyncio.sleep(0.2)
        sent = relay.tally().up.offered
        await asyncio.sleep(0.2)
        assert relay.tally().up.offered == sent
        await asyncio.sleep(0.3)
        assert relay.tally().up.offered > sent
        await leg.aclose()


def test_a_leg_that_dozes_is_heard_of_twice_before_it_is_given_up() -> None:
    assert 2 * tenuto.client.driver.DOZE_INTERVAL < tenuto.client.quic.IDLE_TIMEOUT


async def test_over_tcp_resting_silences_the_kernel(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    address = Address(socket.AF_INET, ("127.0.0.1", server.port))
    leg = await connect_tcp([address], "localhost", Trust(ca_file), deadline=5.0)

    def keeps_alive() -> bool:
        made = leg._writer.get_extra_info("socket")
        return bool(made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

    assert keeps_alive()
    leg.rest(True)
    assert not keeps_alive()
    leg.rest(False)
    assert keeps_alive()
    leg.ping()
    assert leg.rebind() is False
    await leg.aclose()
    leg.rest(True)


# A server and a client behind a path that takes no packet above 1,280 bytes, from mid-stream on
# in the first half of the runs, from the beginning in the others.
SCENE = """
import asyncio, subprocess, sys
from pathlib import Path
from quicserver.app import Server
from tenuto.settings import ServerSettings
from tests.support.watched import listen
host, begins, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
def drop():
    for line in ("add table inet t", "add chain inet t i { type filter hook input priority 0 ; }",
                 "add rule inet t i meta l4proto udp meta length > 1280 counter drop"):
        subprocess.run(["nft", line], check=True)
async def main():
    settings = ServerSettings(
        hosts=(host,), port=0, test_sources=True, certificates_folder=folder, grace=0.2
    )
    server = Server(settings, on_event=lambda event: None)
    await server.start()
    if not begins:
        drop()
    def meanwhile(watched):
        loop = asyncio.get_running_loop()
        if begins:
            loop.call_later(begins, drop)
        loop.call_later(begins + 0.3, watched.leg.rebind)
    path = "/v1/speak?source=counting&lead=0.2&frames=50"
    watched = await listen((host, server.port), folder / "ca.pem", path, meanwhile)
    print(len(watched.sequences), watched.lost, watched.longest_gap < 0.3)
    await server.stop()
asyncio.run(main())
"""


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") is None,
    reason="the firewall is nft",
)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("begins", [0.0, 0.3])
def test_a_path_of_1280_bytes_plays_with_defaults(host: str, begins: float, ca_file: Path) -> None:
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    scene = [sys.executable, "-c", SCENE, host, str(begins), str(ca_file.parent)]
    done = subprocess.run(
        ["unshare", "--net", *scene],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "50 0 True\n", done.stdout + done.stderr
