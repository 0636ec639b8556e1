"""Beds of the kernel's own TCP, UDP and ICMP, over TUN and over veth."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from netem.drivers.bed import Bed, Host
from netem.drivers.linkbed import LinkBed
from netem.errors import ImpairmentError
from netem.kernel.interfaces import configure, ip
from netem.kernel.namespaces import Namespace
from netem.profile import (
    Answer,
    Block,
    Conditions,
    Mtu,
    Nat,
    Profile,
    RandomLoss,
    Rate,
)
from tests.netem.conftest import Make
from tests.netem.hosts import address, bound
from tests.netem.outer import Outer, eventually

CLEAR = Profile(name="clear")
SIDE = Conditions(delay=0.03, loss=RandomLoss(rate=0.05))
LOSS5 = Profile(name="loss5", up=SIDE, down=SIDE)


FAMILIES = pytest.mark.parametrize(
    "family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv6"]
)


def test_an_idle_link_carries_nothing(make: Make) -> None:
    bed = make(CLEAR)
    time.sleep(1.0)
    path = bed.tally().path
    assert (path.up.offered, path.down.offered) == (0, 0)


@FAMILIES
def test_ping_takes_the_delay_of_both_ways(make: Make, family: int) -> None:
    bed = make(replace(LOSS5, up=Conditions(delay=0.02), down=Conditions(delay=0.04)))
    to = address(bed.server, family)
    ping = bed.client.popen(["ping", "-c10", "-i0.02", to], stdout=subprocess.PIPE)
    said = ping.communicate(timeout=10)[0].decode()
    assert " 0% packet loss" in said
    smallest = float(said.splitlines()[-1].split("=")[1].split("/")[0])
    assert 60 <= smallest < 66
    path = bed.tally().path
    assert (path.up.link.delivered, path.down.link.delivered) == (10, 10)


@FAMILIES
def test_udp_arrives_or_is_counted_as_lost(make: Make, family: int) -> None:
    bed = make(LOSS5)
    with bound(bed.server, family) as server, bound(bed.client, family) as client:
        for number in range(2000):
            client.sendto(b"%d" % number, server.getsockname())
            if number % 50 == 49:
                time.sleep(0.002)
        assert eventually(lambda: bed.tally().path.up.link.in_flight == 0)
        server.settimeout(0.2)
        got = []
        with contextlib.suppress(TimeoutError):
            while True:
                got.append(int(server.recv(100)))
    link = bed.tally().path.up.link
    assert (link.offered, link.lost + len(got)) == (2000, 2000)
    assert 60 < link.lost < 145
    assert got == sorted(got)


def transfer(bed: Bed, family: int, size: int) -> int:
    """Bytes from server to client by TCP; how many segments the server sent again."""
    listener = bound(bed.server, family, socket.SOCK_STREAM)
    listener.listen()
    retransmitted: list[int] = []

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(bytes(size))
            peer.shutdown(socket.SHUT_WR)
            peer.recv(1)
            # linux/tcp.h, struct tcp_info: eight bytes, then tcpi_total_retrans is word 23.
            info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            retransmitted.append(struct.unpack_from("I", info, 8 + 4 * 23)[0])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with bound(bed.client, family, socket.SOCK_STREAM) as client:
            client.connect(listener.getsockname())
            client.settimeout(30)
            received = 0
            while piece := client.recv(65_536):
                received += len(piece)
            assert received == size
    finally:
        thread.join()
        listener.close()
    return retransmitted[0]


@FAMILIES
def test_the_kernels_tcp_sees_the_loss(make: Make, family: int) -> None:
    bed = make(replace(LOSS5, up=Conditions(delay=0.002), down=replace(SIDE, delay=0.002)))
    retransmitted = transfer(bed, family, 600_000)
    lost = bed.tally().path.down.link.lost
    assert lost > 5
    assert retransmitted >= lost // 2


@FAMILIES
def test_tcp_over_a_clear_link_is_not_retransmitted(make: Make, family: int) -> None:
    bed = make(replace(CLEAR, down=Conditions(bottleneck=Rate(bits_per_second=5e7, queue=2000))))
    # The counts tell whether the bed lost it or TCP was in a hurry.
    assert transfer(bed, family, 1_000_000) == 0, bed.tally()


def checksum(data: bytes) -> int:
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def assert_sound(packet: bytes) -> None:
    """As a wire would have it: the size, and every checksum that can be told."""
    assert len(packet) <= 1500
    if packet[0] >> 4 == 4:
        header = (packet[0] & 15) * 4
        assert len(packet) == int.from_bytes(packet[2:4])
        assert checksum(packet[:header]) == 0xFFFF
        protocol, fragment = packet[9], int.from_bytes(packet[6:8]) & 0x3FFF
        pseudo = packet[12:20]
    else:
        header = 40
        assert len(packet) == 40 + int.from_bytes(packet[4:6])
        protocol, fragment = packet[6], 0
        pseudo = packet[8:40]
    if fragment or protocol not in (6, 17):
        return
    body = packet[header:]
    assert checksum(pseudo + struct.pack("!HH", protocol, len(body)) + body) == 0xFFFF


@contextlib.contextmanager
def tapped(host: Host) -> Iterator[list[bytes]]:
    """What its device receives."""
    with host.entered():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    tap.bind((host.interface, 3))
    tap.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
    tap.setblocking(False)
    seen: list[bytes] = []
    yield seen
    with contextlib.suppress(BlockingIOError):
        while True:
            packet, (_, _, kind, *_) = tap.recvfrom(65_600)
            if kind == socket.PACKET_HOST:
                seen.append(packet)
    tap.close()


@FAMILIES
def test_packets_are_whole_and_no_larger_than_the_mtu(make: Make, family: int) -> None:
    bed = make(replace(CLEAR, down=Conditions(bottleneck=Rate(bits_per_second=5e7, queue=2000))))
    with tapped(bed.server) as up, tapped(bed.client) as down:
        transfer(bed, family, 300_000)
        with bound(bed.server, family) as server, bound(bed.client, family) as client:
            for size in (0, 1, 1000, 4000, 60_000):
                client.sendto(bytes(size), server.getsockname())
                assert len(server.recv(65_536)) == size
    assert len(up) > 50
    assert max(map(len, down)) == 1500
    for packet in (*up, *down):
        assert_sound(packet)


@FAMILIES
def test_a_nat_gives_ports_of_its_own_and_good_checksums(make: Make, family: int) -> None:
    bed = make(Profile(name="nat", nat=Nat(rebind_at=(0.3,))))
    bed.restart()
    with bound(bed.server, family) as server, bound(bed.client, family) as client:
        ports = []
        for _ in range(2):
            client.sendto(b"who am I", server.getsockname())
            _, seen = server.recvfrom(100)
            server.sendto(b"you", seen)
            assert client.recv(100) == b"you"
            ports.append(seen[1])
            time.sleep(0.3)
        assert client.getsockname()[1] not in ports
        assert len(set(ports)) == 2
        # What still goes to the old port goes nowhere.
        server.sendto(b"late", (address(bed.client, family), ports[0]))
        assert eventually(lambda: bed.tally().path.down.unbound == 1)
    assert bed.tally().path.rebindings == 1


@FAMILIES
def test_behind_a_nat_a_closed_port_is_told_to_whoever_asked(make: Make, family: int) -> None:
    bed = make(Profile(name="nat", nat=Nat()))
    with bound(bed.server, family) as server, bound(bed.client, family) as client:
        client.connect(server.getsockname())
        server.close()
        client.send(b"anybody?")
        client.settimeout(2)
        with pytest.raises(ConnectionRefusedError):
            client.recv(9)
    with bound(bed.server, family) as server, bound(bed.client, family) as client:
        client.sendto(b"call me back", server.getsockname())
        _, seen = server.recvfrom(99)
        client.close()
        server.connect(seen)
        server.send(b"hello?")
        server.settimeout(2)
        with pytest.raises(ConnectionRefusedError):
            server.recv(9)


@FAMILIES
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer.REJECT, "Connection refused"),
        (Answer.PROHIBIT, "No route to host|Permission denied"),
    ],
)
def test_a_firewall_says_so(make: Make, family: int, answer: Answer, words: str) -> None:
    bed = make(Profile(name="blocked", block=Block(answer=answer)))
    with bound(bed.server, family) as server, bound(bed.client, family) as client:
        client.connect(server.getsockname())
        client.send(b"x")
        with pytest.raises(OSError, match=words):
            client.recv(100)
    assert bed.tally().path.up.blocked == 1


@FAMILIES
def test_a_small_mtu_is_told_and_found(make: Make, family: int) -> None:
    small = Conditions(mtu=Mtu(size=1300, answers=True))
    bed = make(Profile(name="mtu", up=small, down=small))
    assert transfer(bed, family, 100_000) > 0
    path = bed.tally().path
    assert path.down.too_big > 0
    assert path.up.link.delivered > 0


def test_the_last_counts_outlive_the_bed(make: Make) -> None:
    bed = make(CLEAR)
    bed.client.popen(["ping", "-qc1", bed.server.ipv4], stdout=subprocess.DEVNULL).wait()
    bed.close()
    assert bed.tally().path.up.offered == 1
    bed.close()


def test_an_emulator_that_died_is_never_taken_for_a_clear_link(make: Make) -> None:
    bed = make(LOSS5)
    bed.check()
    os.kill(bed.emulator_pid, signal.SIGKILL)
    with pytest.raises(ImpairmentError, match="The emulator is gone"):
        while True:
            bed.check()
            time.sleep(0.001)
    with pytest.raises(ImpairmentError, match="The emulator is gone"):
        bed.tally()
    ping = bed.client.popen(["ping", "-qc1", "-W0.2", bed.server.ipv4], stdout=subprocess.DEVNULL)
    assert ping.wait() != 0


def test_what_the_emulator_did_not_fetch_is_counted(make: Make) -> None:
    bed = make(CLEAR)
    sent = 50_000
    with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as client:
        os.kill(bed.emulator_pid, signal.SIGSTOP)
        try:
            for _ in range(sent):
                with contextlib.suppress(BlockingIOError):
                    client.sendto(bytes(100), server.getsockname())
        finally:
            os.kill(bed.emulator_pid, signal.SIGCONT)
        assert eventually(lambda: bed.tally().path.up.offered + bed.tally().unread >= sent)
    told = bed.tally()
    assert told.unread > 0
    assert told.path.up.offered + told.unread == sent
    assert told.behind > 0.01 or told.path.up.offered <= 64


def test_a_packet_that_waited_for_a_stopped_emulator_is_told(make: Make) -> None:
    bed = make(CLEAR)
    with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as client:
        os.kill(bed.emulator_pid, signal.SIGSTOP)
        client.sendto(b"late", server.getsockname())
        time.sleep(0.1)
        os.kill(bed.emulator_pid, signal.SIGCONT)
        assert server.recv(9) == b"late"
    assert bed.tally().behind > 0.08


def test_beds_side_by_side_leave_nothing(make: Make) -> None:
    fds = set(os.listdir("/proc/self/fd"))
    with Namespace.new() as home:
        configure(home, ["link set dev lo up"])
        before = ip(home, ["-o", "address"]) + ip(home, ["-o", "link"])
        first, second = make(CLEAR, server=home), make(CLEAR, server=home)
        assert first.server.ipv4 != second.server.ipv4
        assert first.server.ipv6 != second.server.ipv6
        for bed in (first, second):
            to = bed.server.ipv4
            assert bed.client.popen(["ping", "-qc1", to], stdout=subprocess.DEVNULL).wait() == 0
        left = second.client.popen(["sleep", "60"])
        for bed in (first, second):
            bed.close()
        assert left.poll() == -signal.SIGKILL
        assert eventually(lambda: ip(home, ["-o", "address"]) + ip(home, ["-o", "link"]) == before)
    assert set(os.listdir("/proc/self/fd")) == fds


def test_a_congestion_control_that_is_not_there(make: Make) -> None:
    fds = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ImpairmentError, match="congctl nosuch. failed: .*[Uu]nknown"):
        make(CLEAR, congestion="nosuch")
    assert set(os.listdir("/proc/self/fd")) == fds


def test_the_congestion_control_is_pinned(make: Make) -> None:
    bed = make(CLEAR, congestion="reno")
    for host in (bed.client, bed.server):
        routes = ip(host.namespace, ["route"]) + ip(host.namespace, ["-6", "route"])
        assert routes.count("congctl reno") == 2


def test_a_bed_of_a_thread_outlives_it(make: Make) -> None:
    made: list[LinkBed] = []
    thread = threading.Thread(target=lambda: made.append(make(CLEAR)))
    thread.start()
    thread.join()
    time.sleep(0.1)
    made[0].check()
    to = made[0].server.ipv4
    assert made[0].client.popen(["ping", "-qc1", to], stdout=subprocess.DEVNULL).wait() == 0


def test_the_outer_network_is_not_touched(make: Make, outer: Outer) -> None:
    before = outer.state()
    with outer.namespace.entered():
        bed = make(LOSS5)
    assert outer.state() == before
    bed.close()
    assert outer.state() == before


def test_an_emulator_that_does_not_answer_is_ended(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its start needs patience, too, where all share the processors.
    monkeypatch.setattr("netem.drivers.emulation.PATIENCE", 3)
    bed = make(CLEAR)
    os.kill(bed.emulator_pid, signal.SIGSTOP)
    with pytest.raises(ImpairmentError, match="gave no answer in 3 s"):
        bed.tally()
    bed.close()
    with pytest.raises(ImpairmentError, match="gone before the last count"):
        bed.tally()


def test_whatever_a_host_sends_the_emulator_lives(make: Make) -> None:
    bed = make(Profile(name="all", up=Conditions(corrupt=0.5), nat=Nat(idle=30.0)))
    with bed.client.entered():
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    server, client = (bound(host, socket.AF_INET) for host in (bed.server, bed.client))
    with raw, server, client:
        for kind in (0x0800, 0x86DD, 0x0806):
            for size in range(60):
                for first in (b"", b"\x45", b"\x60", b"\xff"):
                    with contextlib.suppress(OSError):
                        to = (bed.client.interface, kind, 0, 0, bytes(6))
                        raw.sendto(first + bytes(size), to)
        for _ in range(200):
            client.sendto(b"x" * 50, server.getsockname())
    assert eventually(lambda: bed.tally().path.up.link.corrupted > 80)
    bed.check()
