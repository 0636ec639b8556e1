"""A real QUIC stack in virtual time: aioquic on both sides of a bad path."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    HandshakeCompleted,
    StreamDataReceived,
)
from aioquic.quic.stream import QuicStream
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from netem.drivers.memory import MemoryPath
from netem.link import PathTally
from netem.profile import (
    Conditions,
    GilbertElliott,
    Jitter,
    Nat,
    Profile,
    RandomLoss,
    Rate,
    Way,
)
from tests.support.quicpeer import Address, QuicPeer

CLIENT: Address = ("192.0.2.1", 40001)
SERVER: Address = ("192.0.2.2", 4433)
FRAME = 640
PROFILE = Profile(
    name="bad-mobile",
    up=Conditions(delay=0.030, jitter=Jitter(spread=0.004), loss=RandomLoss(rate=0.05)),
    down=Conditions(
        delay=0.030,
        jitter=Jitter(spread=0.004),
        loss=GilbertElliott.of_mean(0.05, 3.0),
        bottleneck=Rate(bits_per_second=2e6, queue=50),
        duplicate=0.01,
        reorder=0.01,
    ),
    nat=Nat(rebind_at=(6.0,)),
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of Ed25519: signatures of ECDSA differ in length, and so would the packets of two runs."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, None)
    )
    path = tmp_path_factory.mktemp("ed25519") / "both.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + signed.public_bytes(Encoding.PEM))
    return path


def connections(certificate: Path) -> tuple[QuicConnection, QuicConnection]:
    client = QuicConfiguration(
        is_client=True,
        alpn_protocols=["lab"],
        server_name="localhost",
        cafile=str(certificate),
        max_datagram_frame_size=65536,
    )
    server = QuicConfiguration(
        is_client=False, alpn_protocols=["lab"], max_datagram_frame_size=65536
    )
    server.load_cert_chain(certificate, certificate)
    one = QuicConnection(configuration=client)
    return one, QuicConnection(
        configuration=server,
        original_destination_connection_id=one.original_destination_connection_id,
    )


Story = list[tuple[float, str, str, int]]


def story(certificate: Path, seed: int) -> tuple[Story, PathTally, QuicPeer]:
    """When each event came, to whom, of how many bytes; their contents differ, as keys do."""
    one, two = connections(certificate)
    client, server = QuicPeer(one), QuicPeer(two)
    path = MemoryPath(PROFILE, seed, client, server, client_address=CLIENT, server_address=SERVER)
    told: Story = []

    def listen(name: str, peer: QuicPeer) -> None:
        peer.on_event = lambda event: told.append(
            (path.now, name, type(event).__name__, len(getattr(event, "data", b"") or b""))
        )

    listen("client", client)
    listen("server", server)
    one.connect(SERVER, now=path.now)
    path.transmit(Way.UP)

    def frame(number: int) -> None:
        two.send_datagram_frame(number.to_bytes(2) + bytes(FRAME - 2))
        two.send_stream_data(4 * (number % 5) + 1, bytes(FRAME))
        path.transmit(Way.DOWN)

    for number in range(500):
        path.at(2.0 + number * 0.020, partial(frame, number))

    def ping() -> None:
        # It shows the server the client's new port.
        one.send_ping(0)
        path.transmit(Way.UP)

    for second in range(20):
        path.at(2.5 + second, ping)
    path.run_until(30.0)
    return told, path.tally(), client


def test_quic_lives_through_it_and_twice_the_same(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # aioquic serves streams in the order of a set, that is, of where they lie in memory.
    monkeypatch.setattr(QuicStream, "__hash__", lambda stream: hash(stream.stream_id))
    told, tally, client = story(certificate, 11)
    again, tally_again, _ = story(certificate, 11)
    assert told == again
    assert tally == tally_again
    kinds = [event for event in client.events if isinstance(event, HandshakeCompleted)]
    assert len(kinds) == 1
    assert not any(isinstance(event, ConnectionTerminated) for event in client.events)
    datagrams = {
        int.from_bytes(event.data[:2])
        for event in client.events
        if isinstance(event, DatagramFrameReceived)
    }
    # Datagrams are lost as packets are; streams never.
    assert 420 <= len(datagrams) <= 490
    streamed = sum(
        len(event.data) for event in client.events if isinstance(event, StreamDataReceived)
    )
    assert streamed == 500 * FRAME
    assert tally.rebindings >= 1
    assert 0.03 <= tally.down.link.lost / tally.down.link.offered <= 0.08
    other, _, _ = story(certificate, 12)
    assert other != told
