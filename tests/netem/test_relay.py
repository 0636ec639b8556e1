"""The relay with real sockets on the loopback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from netem.drivers.relay import CANNOT_SHOW, Relay, supports
from netem.drivers.relaying import MAX_FLOWS
from netem.errors import ImpairmentError, NetemError
from netem.link import PathTally
from netem.profile import (
    Answer,
    Blackout,
    Block,
    Conditions,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Way,
)

CLEAN = Profile(name="clean")
HOSTS = ["127.0.0.1", "::1"]


def udp(host: str, port: int = 0) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.bind((host, port))
    made.settimeout(5.0)
    return made


class Echo:
    """A server that sends everything back, and remembers from where it came."""

    def __init__(self, host: str) -> None:
        self.socket = udp(host)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.heard: list[tuple[bytes, int]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            data, source = self.socket.recvfrom(65536)
            if data == b"stop":
                return
            self.heard.append((data, source[1]))
            self.socket.sendto(data, source)

    def close(self) -> None:
        with udp(self.address[0]) as stopper:
            stopper.sendto(b"stop", self.address)
        self._thread.join()
        self.socket.close()


@pytest.fixture(params=HOSTS)
def echo(request: pytest.FixtureRequest) -> Iterator[Echo]:
    server = Echo(request.param)
    # A test may be silent for as long as it likes.
    server.socket.settimeout(None)
    yield server
    server.close()


def through(relay: Relay, *datagrams: bytes) -> socket.socket:
    client = udp(relay.address[0])
    for data in datagrams:
        client.sendto(data, relay.address)
    return client


def relay_to(echo: Echo, profile: Profile, *, seed: int = 1, idle: float = 300.0) -> Relay:
    return Relay(profile, seed, echo.address, (echo.address[0], 0), idle=idle)


def settled(relay: Relay) -> PathTally:
    """The tally once nothing is under way and nothing more comes."""
    before = None
    while (tally := relay.tally()) != before or tally.up.link.in_flight + tally.down.link.in_flight:
        before = tally
        time.sleep(0.05)
    return tally


def test_datagrams_go_both_ways_with_the_delay_of_the_profile(echo: Echo) -> None:
    profile = Profile(name="p", up=Conditions(delay=0.030), down=Conditions(delay=0.020))
    with relay_to(echo, profile) as relay:
        sent = time.monotonic()
        with through(relay, b"hello") as client:
            data, source = client.recvfrom(100)
        taken = time.monotonic() - sent
        assert (data, source[:2]) == (b"hello", relay.address)
        assert 0.050 <= taken < 0.5
        tally = relay.tally()
    assert tally.up.link.delivered == tally.down.link.delivered == 1
    assert tally.up.link.mean_delay == pytest.approx(0.030)
    assert relay.tally() == tally


def test_each_client_has_its_own_socket_and_hears_its_own_answers(echo: Echo) -> None:
    with relay_to(echo, CLEAN) as relay:
        clients = [through(relay, b"%d" % number) for number in range(5)]
        answers = [client.recv(100) for client in clients]
        assert answers == [b"0", b"1", b"2", b"3", b"4"]
        assert len({port for _, port in echo.heard}) == 5
        assert relay.counts().flows == 5
        for client in clients:
            client.close()


def test_the_same_seed_loses_the_same_datagrams() -> None:
    profile = Profile(name="p", up=Conditions(loss=RandomLoss(rate=0.3)))
    heard = []
    for _ in range(2):
        server = Echo("127.0.0.1")
        server.socket.settimeout(None)
        with relay_to(server, profile, seed=7) as relay:
            with through(relay, *(b"%d" % number for number in range(200))):
                settled(relay)
            assert relay.tally().up.link.lost + len(server.heard) == 200
        heard.append([data for data, _ in server.heard])
        server.close()
    assert heard[0] == heard[1]
    assert 100 < len(heard[0]) < 180


def test_a_rebinding_is_another_socket_and_the_old_one_hears_nothing(echo: Echo) -> None:
    profile = Profile(name="nat", nat=Nat(rebind_at=(0.3,)))
    with relay_to(echo, profile) as relay:
        with through(relay, b"before") as client:
            assert client.recv(100) == b"before"
            time.sleep(0.35)
            old = echo.heard[0][1]
            client.sendto(b"after", relay.address)
            assert client.recv(100) == b"after"
            new = echo.heard[1][1]
            assert new != old
            # What the server still sends to the old binding is nobody's.
            echo.socket.sendto(b"late", (echo.address[0], old))
            tally = settled(relay)
        assert tally.rebindings == 1
        assert tally.down.unbound == 1
        assert relay.counts().flows == 2


def test_first_packets_pass_in_each_direction_and_then_none(echo: Echo) -> None:
    profile = Profile(name="first", block=Block(first_packets=2))
    with relay_to(echo, profile) as relay, through(relay, b"1", b"2", b"3", b"4") as client:
        assert [client.recv(100), client.recv(100)] == [b"1", b"2"]
        tally = settled(relay)
    assert (tally.up.blocked, tally.down.blocked) == (2, 0)
    assert [data for data, _ in echo.heard] == [b"1", b"2"]


def test_a_block_of_another_port_does_not_concern_this_server(echo: Echo) -> None:
    port = echo.address[1] ^ 1
    for block in (Block(), Block(answer=Answer.REJECT)):
        profile = Profile(name="other", block=block, udp_port=port)
        with relay_to(echo, profile) as relay, through(relay, b"x") as client:
            assert client.recv(100) == b"x"


def test_policing_lets_the_burst_through(echo: Echo) -> None:
    size = 72 + (48 if ":" in echo.address[0] else 28)
    profile = Profile(name="police", police=Police(bits_per_second=8.0, burst=3 * size))
    with relay_to(echo, profile) as relay, through(relay, *(bytes(72) for _ in range(10))):
        tally = settled(relay)
    assert (tally.up.policed, tally.up.link.delivered) == (7, 3)


def test_a_black_hole_by_size_and_one_by_time(echo: Echo) -> None:
    overhead = 48 if ":" in echo.address[0] else 28
    dark = (Blackout(start=0.0, length=60.0),)
    profile = Profile(
        name="holes",
        up=Conditions(mtu=Mtu(size=500 + overhead)),
        down=Conditions(blackouts=dark),
    )
    with relay_to(echo, profile) as relay, through(relay, bytes(500), bytes(501)):
        tally = settled(relay)
    assert tally.up.too_big == 1
    assert tally.down.link.blacked_out == 1
    assert [len(data) for data, _ in echo.heard] == [500]


@pytest.mark.parametrize("host", [*HOSTS, "0.0.0.0"])  # noqa: S104
def test_a_rejected_client_is_told_by_the_kernel(host: str) -> None:
    profile = Profile(name="reject", block=Block(answer=Answer.REJECT))
    with Relay(profile, 1, ("127.0.0.1", 9), (host, 0)) as relay:
        address = ("::1" if host == "::1" else "127.0.0.1", relay.address[1])
        with udp(address[0]) as client:
            client.connect(address)
            for _ in range(2):
                client.send(b"anybody?")
                with pytest.raises(ConnectionRefusedError):
                    client.recv(100)


@pytest.mark.parametrize("host", HOSTS)
def test_a_server_that_is_not_there_does_not_end_it(host: str) -> None:
    server = udp(host)
    address = server.getsockname()[:2]
    server.close()
    with Relay(CLEAN, 1, address, (host, 0)) as relay:
        with udp(host) as client:
            for _ in range(5):
                client.sendto(b"x", relay.address)
                time.sleep(0.02)
            assert relay.counts().refused >= 4
            with udp(host, address[1]) as server:
                client.sendto(b"now", relay.address)
                data, source = server.recvfrom(100)
                assert data == b"now"
                server.sendto(b"yes", source)
                assert client.recv(100) == b"yes"
        assert relay.counts().send_errors == 0


def test_sockets_are_bounded_and_the_least_recently_used_goes() -> None:
    server = Echo("127.0.0.1")
    server.socket.settimeout(None)
    with relay_to(server, CLEAN) as relay:
        clients = []
        for number in range(MAX_FLOWS + 3):
            client = through(relay, b"%d" % number)
            assert client.recv(100) == b"%d" % number
            clients.append(client)
        counts = relay.counts()
        assert (counts.flows, counts.evicted) == (MAX_FLOWS, 3)
        # The first has lost its socket, and gets another.
        clients[0].sendto(b"again", relay.address)
        assert clients[0].recv(100) == b"again"
        assert relay.counts().evicted == 4
        for client in clients:
            client.close()
    server.close()


def test_idle_flows_are_dropped(echo: Echo) -> None:
    with relay_to(echo, CLEAN, idle=0.1) as relay, through(relay, b"x") as client:
        assert client.recv(100) == b"x"
        assert relay.counts().flows == 1
        time.sleep(0.35)
        assert (relay.counts().flows, relay.counts().idled) == (0, 1)
        client.sendto(b"y", relay.address)
        assert client.recv(100) == b"y"


def test_an_empty_datagram_passes(echo: Echo) -> None:
    with relay_to(echo, CLEAN) as relay, through(relay, b"") as client:
        assert client.recv(100) == b""


def test_what_it_cannot_apply_is_refused_by_name() -> None:
    mtu = Conditions(mtu=Mtu(size=1300, answers=True))
    profile = Profile(name="p", down=mtu, block=Block(answer=Answer.PROHIBIT))
    assert [reason.split(":")[0] for reason in supports(profile)] == [
        "block.answer prohibit",
        "down.mtu.answers",
    ]
    first = Profile(name="p", block=Block(answer=Answer.REJECT, first_packets=1))
    assert "closed to all or to nobody" in supports(first)[0]
    one_way = Block(answer=Answer.REJECT, way=Way.UP)
    assert "closed both ways" in supports(Profile(name="p", block=one_way))[0]
    assert supports(Profile(name="p", block=Block(answer=Answer.REJECT))) == []
    with pytest.raises(ImpairmentError, match="p: block.answer prohibit: .*use the driver tun"):
        Relay(profile, 1, ("127.0.0.1", 9))
    assert CANNOT_SHOW[0].startswith("TCP")


@pytest.mark.parametrize(
    ("server", "listen", "message"),
    [
        (("no.such.host.invalid", 9), ("127.0.0.1", 0), "no.such.host.invalid: .*name an address"),
        (("127.0.0.1", 70000), ("127.0.0.1", 0), "127.0.0.1:70000: no port"),
        (("127.0.0.1", 0), ("127.0.0.1", 0), "127.0.0.1:0: no server has port 0"),
        (("127.0.0.1", 9), ("203.0.113.1", 0), "cannot listen on 203.0.113.1 port 0: "),
        (("a" * 70, 9), ("127.0.0.1", 0), "a: .*name an address"),
    ],
)
def test_bad_addresses_are_named(
    server: tuple[str, int], listen: tuple[str, int], message: str
) -> None:
    with pytest.raises(NetemError, match=message) as caught:
        Relay(CLEAN, 1, server, listen)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("idle", [0.0, -1.0, float("nan")])
def test_a_flow_lives_for_a_time(idle: float) -> None:
    with pytest.raises(NetemError, match="no flow would live"):
        Relay(CLEAN, 1, ("127.0.0.1", 9), idle=idle)


def test_a_port_that_is_taken_is_named() -> None:
    with udp("127.0.0.1") as taken:
        address = taken.getsockname()
        with pytest.raises(NetemError, match=f"port {address[1]}: Address already in use"):
            Relay(CLEAN, 1, ("127.0.0.1", 9), address)


def test_what_a_socket_had_no_room_for_is_told(echo: Echo) -> None:
    relay = relay_to(echo, CLEAN)
    sent = 5_000
    with udp(relay.address[0]) as client:
        # Before anybody reads.
        for _ in range(sent):
            client.sendto(bytes(1000), relay.address)
        with relay:
            assert settled(relay).up.link.offered > 0
            told = relay.bed_tally()
    assert told.unread > 0
    assert told.path.up.link.offered + told.unread == sent


def test_the_lateness_of_a_relay_is_told(echo: Echo) -> None:
    with relay_to(echo, Profile(name="p", up=Conditions(delay=0.01))) as relay:
        with through(relay, b"hello") as client:
            assert client.recv(100) == b"hello"
        told = relay.bed_tally().lateness
    assert told.count == 2
    assert 0 < told.p50 <= told.max
