"""The bed of the kernel's own tc and nft, as far as this kernel has them."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netem.catalogue import Catalogue
from netem.drivers.tc import TcBed, netem_refusal
from netem.drivers.tclines import run_line
from netem.errors import ImpairmentError
from netem.kernel.interfaces import find_tool
from netem.kernel.namespaces import Namespace
from netem.profile.conditions import Block, Conditions, Police, Profile, Rate

PORT = 443


def _reason() -> str | None:
    missing = [tool for tool in ("ip", "tc", "nft") if find_tool(tool) is None]
    if missing:
        return f"no {missing[0]} here"
    try:
        Namespace.new().close()
    except ImpairmentError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_reason() is not None, reason=f"{_reason()}")


@contextlib.contextmanager
def sockets(bed: TcBed, address: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A UDP socket on the client, connected to one on the server."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with bed.server.entered():
        server = socket.socket(family, socket.SOCK_DGRAM)
    with bed.client.entered():
        client = socket.socket(family, socket.SOCK_DGRAM)
    with server, client:
        server.bind((address, PORT))
        server.settimeout(0.3)
        client.settimeout(0.3)
        client.connect((address, PORT))
        yield client, server


def send(client: socket.socket, count: int, size: int = 100) -> OSError | None:
    """What the kernel said of them, the last time it said something."""
    said = None
    for _ in range(count):
        try:
            client.send(bytes(size))
        except OSError as error:
            said = error
        time.sleep(0.001)
    return said


def received(server: socket.socket) -> int:
    count = 0
    with contextlib.suppress(TimeoutError):
        while True:
            server.recv(65_535)
            count += 1
    return count


def load(name: str) -> Profile:
    return Catalogue().load(name)


def addresses(bed: TcBed) -> list[str]:
    return [address for address in (bed.server.ipv4, bed.server.ipv6) if address]


def test_a_clear_path_carries_both_families_and_is_otherwise_silent() -> None:
    with TcBed(load("clear")) as bed:
        time.sleep(0.5)
        assert bed.tally().path.up.offered == bed.tally().path.down.offered == 0
        for address in addresses(bed):
            with sockets(bed, address) as (client, server):
                assert send(client, 50) is None
                assert received(server) == 50
        assert bed.tally().path.up.link.delivered == 50 * len(addresses(bed))
        bed.check()
    # Also after the end.
    assert bed.tally().path.up.link.delivered > 0


@pytest.mark.parametrize(
    ("name", "arrived", "error"),
    [
        ("udp-blocked-drop", 0, None),
        ("udp-blocked-reject", 0, "Connection refused"),
        ("udp-blocked-prohibit", 0, "No route to host|Permission denied"),
        ("udp-blocked-first-packet", 1, None),
        ("udp-blocked-after-handshake", 20, None),
        # 3,000 bytes at once, then 1,000 a second, in packets of 128 and 148 bytes.
        ("udp-blocked-throttled", 23, None),
    ],
)
def test_udp_is_blocked(name: str, arrived: int, error: str | None) -> None:
    for number in (0, 1):
        with TcBed(load(name), udp_port=PORT) as bed:
            if number >= len(addresses(bed)):
                continue
            with sockets(bed, addresses(bed)[number]) as (client, server):
                said = send(client, 60)
                got = received(server)
            assert abs(got - arrived) <= (4 if arrived == 23 else 0)
            if error is None:
                assert said is None
            else:
                assert said is not None
                assert said.strerror in error.split("|")
            way = bed.tally().path.up
            held = way.policed if arrived == 23 else way.blocked
            assert held + got + (60 - held - got if said else 0) == 60
            assert held > 0


def test_udp_is_blocked_downward_too_and_other_ports_are_not() -> None:
    with TcBed(Profile(name="mine", block=Block(first_packets=1), udp_port=PORT)) as bed:
        with sockets(bed, bed.server.ipv4) as (client, server):
            send(client, 3)
            _, peer = server.recvfrom(100)
            for _ in range(3):
                server.sendto(b"answer", peer)
            assert received(client) == 1
        path = bed.tally().path
        assert (path.up.blocked, path.down.blocked) == (2, 2)
    with (
        TcBed(load("udp-blocked-drop"), udp_port=PORT + 1) as bed,
        sockets(bed, bed.server.ipv4) as (client, server),
    ):
        send(client, 3)
        assert received(server) == 3


def test_tcp_passes_where_udp_does_not() -> None:
    with TcBed(load("udp-blocked-drop")) as bed:
        with bed.server.entered():
            listener = socket.create_server((bed.server.ipv4, PORT))
        with bed.client.entered():
            client = socket.create_connection((bed.server.ipv4, PORT), timeout=2)
        with listener, client:
            accepted, _ = listener.accept()
            with accepted:
                client.sendall(b"x")
                assert accepted.recv(1) == b"x"
                name = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert name.rstrip(b"\0") == b"cubic"


def test_packets_above_the_mtu_vanish_or_are_answered() -> None:
    for number in (0, 1):
        with TcBed(load("mtu-blackhole")) as bed:
            if number >= len(addresses(bed)):
                continue
            with sockets(bed, addresses(bed)[number]) as (client, server):
                assert send(client, 3, size=1_300) is None
                send(client, 2, size=1_200)
                assert received(server) == 2
            assert bed.tally().path.up.too_big == 3
        with (
            TcBed(load("mtu-1280")) as bed,
            sockets(bed, addresses(bed)[number]) as (client, server),
        ):
            # IP_MTU_DISCOVER and its like of IPv6, both "do": refuse what is known not to pass.
            level, option = (socket.IPPROTO_IP, 10) if number == 0 else (socket.IPPROTO_IPV6, 23)
            client.setsockopt(level, option, 2)
            said = send(client, 5, size=1_300)
            assert said is not None
            assert said.strerror == "Message too long"


def test_a_rate_holds_and_its_queue_drops_at_the_tail() -> None:
    slow = Conditions(bottleneck=Rate(bits_per_second=1e6, queue=10))
    with TcBed(Profile(name="mine", up=slow)) as bed:
        with sockets(bed, bed.server.ipv4) as (client, server):
            for _ in range(40):
                client.send(bytes(1_000))
            start = time.monotonic()
            got = received(server)
            took = time.monotonic() - start - 0.3
        # Three fit the bucket of 3,100 bytes, ten wait, at 1,042 bytes a frame.
        assert 12 <= got <= 16, bed.tally()
        # 83 ms for those that waited; a busy machine may take its time.
        assert 0.06 < took < 1.0
        link = bed.tally().path.up.link
        assert (link.delivered, link.queue_dropped, link.lost) == (got, 40 - got, 0)
        assert link.offered == 40
        # Again from the beginning.
        bed.restart()
        bed.check()
        assert bed.tally().path.up.link.offered == 0
        # With another profile, from then on.
        with pytest.raises(ImpairmentError, match="without a seed, so seed 3 means nothing"):
            bed.restart(seed=3)
        with pytest.raises(ImpairmentError, match="tc cannot do the profile wifi-bad whole"):
            bed.restart(profile=load("wifi-bad"))
        bed.check()
        bed.restart(profile=load("udp-blocked-drop"))
        bed.check()
        with sockets(bed, bed.server.ipv4) as (client, server):
            send(client, 3)
            assert received(server) == 0
        assert bed.tally().path.up.blocked == 3


def test_a_missing_qdisc_is_noticed() -> None:
    slow = Conditions(bottleneck=Rate(bits_per_second=1e6, queue=10))
    with TcBed(Profile(name="mine", up=slow)) as bed:
        run_line(bed.router, ("tc", "qdisc", "del", "dev", "server", "root"))
        with pytest.raises(ImpairmentError, match="The qdisc 7e: of server is gone"):
            bed.check()


def test_the_server_may_be_in_a_namespace_that_is_there_already() -> None:
    with Namespace.new() as there:
        run_line(there, ("ip", "link", "set", "lo", "up"))
        with (
            TcBed(load("clear"), server=there) as bed,
            sockets(bed, bed.server.ipv4) as (client, server),
        ):
            send(client, 3)
            assert received(server) == 3
        # The pair is gone with the bed, the namespace is not.
        assert "netem" not in run_line(there, ("ip", "link"))


def test_programs_on_the_hosts_end_with_the_bed() -> None:
    with TcBed(load("clear")) as bed:
        process = bed.client.popen(["sleep", "60"])
        assert process.poll() is None
    assert process.poll() is not None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("4g-driving", "down.trace: tc has no rate that follows a trace"),
        ("wifi-bad", "up.fade: netem's losses are clocked by packets; use the tun"),
        ("leo", "down.blackout: tc has no schedule"),
        ("nat-rebind-5s", "nat: a NAT that forgets on schedule"),
    ],
)
def test_what_tc_cannot_do_whole_is_refused(name: str, part: str) -> None:
    with pytest.raises(ImpairmentError) as caught:
        TcBed(load(name))
    assert str(caught.value).startswith(f"tc cannot do the profile {name} whole: ")
    assert part in str(caught.value)


def test_a_burst_that_nft_cannot_keep_is_refused() -> None:
    police = Police(bits_per_second=8e6, burst=3_000)
    with pytest.raises(ImpairmentError, match="a second of the rate"):
        TcBed(Profile(name="mine", police=police))


def test_without_netem_the_kernel_is_quoted() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    reason = netem_refusal()
    if reason is None:
        with TcBed(load("loss5")) as bed:
            bed.check()
        return
    assert "This kernel has no netem; it says to `tc qdisc add dev lo root" in reason
    with pytest.raises(ImpairmentError) as caught:
        TcBed(load("loss5"))
    assert "Error: Specified qdisc kind is unknown." in str(caught.value)
    assert "use the tun or veth driver" in str(caught.value)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_missing_tool_and_a_refused_line_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Namespace.new() as trial:
        with pytest.raises(ImpairmentError, match="refused `ip link set nodev up`: Cannot find"):
            run_line(trial, ("ip", "link", "set", "nodev", "up"))
        monkeypatch.setattr("netem.drivers.tclines.find_tool", lambda name: None)
        with pytest.raises(ImpairmentError, match="There is no `nft` here: install nftables"):
            run_line(trial, ("nft", "list ruleset"))


def test_each_direction_has_its_own_device() -> None:
    slow = Conditions(bottleneck=Rate(bits_per_second=1e6, queue=10))
    for profile, device in (
        (Profile(name="mine", up=slow), "server"),
        (Profile(name="mine", down=slow), "client"),
    ):
        with TcBed(profile) as bed:
            assert "tbf" in run_line(bed.router, ("tc", "qdisc", "show", "dev", device))
