from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from tenuto.tls import (
    CertificateError,
    CertificateHashes,
    CertificateKeeper,
    CertificateProblem,
    CertificateRejected,
    CertificateReplaced,
    DevCertificates,
    RenewalFailed,
    ServerCertificate,
    hash_refusals,
    install,
    load_certificate,
    server_context,
)
from tenuto.tls.folder import locked
from tests.tls.pairs import (
    DAY,
    NOW,
    Pair,
    anyone,
    handshake,
    key_pem,
    make_leaf,
    make_pair,
    replace_file,
    rsa_key,
)

REAL_NOW = datetime.now(UTC)


def quic_leaf(configuration: QuicConfiguration) -> bytes:
    """The certificate that aioquic shows in a handshake in memory."""
    client = QuicConnection(
        configuration=QuicConfiguration(alpn_protocols=["h3"], verify_mode=0, server_name="x")
    )
    client.connect(("127.0.0.1", 1), now=0.0)
    server: QuicConnection | None = None
    for _ in range(4):
        for data, _ in client.datagrams_to_send(now=0.0):
            server = server or QuicConnection(
                configuration=configuration,
                original_destination_connection_id=client.original_destination_connection_id,
            )
            server.receive_datagram(data, ("127.0.0.1", 2), now=0.0)
        assert server is not None
        for data, _ in server.datagrams_to_send(now=0.0):
            client.receive_datagram(data, ("127.0.0.1", 1), now=0.0)
    leaf = client.tls._peer_certificate
    assert leaf is not None
    return leaf.public_bytes(Encoding.DER)


class Doors:
    """Both doors as an application has them."""

    def __init__(self, keeper: CertificateKeeper) -> None:
        self.tcp = server_context(keeper.certificate)
        self.quic = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        keeper.subscribe(lambda certificate: install(self.tcp, certificate))
        keeper.subscribe(self._configure)

    def _configure(self, certificate: ServerCertificate) -> None:
        self.quic.certificate = certificate.leaf
        self.quic.certificate_chain = list(certificate.intermediates)
        self.quic.private_key = certificate.private_key

    def leaves(self) -> set[bytes]:
        return {handshake(self.tcp, anyone()).leaf, quic_leaf(self.quic)}


def der(certificate: ServerCertificate) -> bytes:
    return certificate.leaf.public_bytes(Encoding.DER)


def rejections(keeper: CertificateKeeper, now: datetime, checks: int = 4) -> list[object]:
    """Everything that some checks in a row say."""
    return [event for _ in range(checks) for event in keeper.check(now)]


def keeper_of(pair: Pair) -> CertificateKeeper:
    return CertificateKeeper.of_files(*pair.paths, NOW)


def test_bad_pair_at_the_start_is_an_error(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, end=NOW - timedelta(hours=1))
    with pytest.raises(CertificateError):
        keeper_of(pair)


def test_nothing_happens_while_nothing_changes(tmp_path: Path) -> None:
    keeper = keeper_of(make_pair(tmp_path))
    calls: list[bytes] = []
    keeper.subscribe(lambda certificate: calls.append(certificate.sha256))
    assert rejections(keeper, NOW) == []
    assert calls == [keeper.certificate.sha256]
    assert keeper.days_left(NOW) == 9
    assert keeper.days_left(NOW + 10 * DAY) == -1
    assert keeper.hashes().upcoming is None


def test_both_doors_change_in_the_same_check(tmp_path: Path) -> None:
    """Key first, then the certificate, as many tools do it."""
    pair, new = make_pair(tmp_path), make_pair(tmp_path, "new", key=rsa_key())
    keeper = keeper_of(pair)
    doors, first = Doors(keeper), keeper.certificate
    assert doors.leaves() == {der(first)}

    replace_file(pair.key, new.key.read_bytes())
    assert keeper.check(NOW) == []
    assert doors.leaves() == {der(first)}

    replace_file(pair.chain, new.chain.read_bytes())
    assert keeper.check(NOW) == [CertificateReplaced(first, keeper.certificate)]
    assert keeper.certificate.leaf == new.leaf
    assert doors.leaves() == {new.leaf.public_bytes(Encoding.DER)}
    assert keeper.hashes().current == keeper.certificate.sha256
    assert keeper.check(NOW) == []


def test_written_in_place(tmp_path: Path) -> None:
    pair, new = make_pair(tmp_path), make_pair(tmp_path, "new")
    keeper = keeper_of(pair)
    keeper.check(NOW)
    for source, target in ((new.key, pair.key), (new.chain, pair.chain)):
        target.write_bytes(source.read_bytes())
        keeper.check(NOW)
    assert keeper.certificate.leaf == new.leaf


@pytest.mark.parametrize("offset", [timedelta(0), DAY])
def test_same_size_and_time_is_noticed_all_the_same(tmp_path: Path, offset: timedelta) -> None:
    """Written twice within the clock's resolution, or with its old time restored."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = make_pair(tmp_path, key=key, end=REAL_NOW + 9 * DAY)
    keeper = CertificateKeeper.of_files(*pair.paths, REAL_NOW)
    times = pair.chain.stat()
    keeper.check(REAL_NOW + offset)
    old, size = pair.leaf, len(pair.chain.read_bytes())
    while True:  # a signature's DER has two or three lengths
        new = make_leaf(key, end=REAL_NOW + 9 * DAY)
        if len(new.public_bytes(Encoding.PEM)) == size and new != old:
            break
    pair.chain.write_bytes(new.public_bytes(Encoding.PEM))
    os.utime(pair.chain, ns=(times.st_atime_ns, times.st_mtime_ns))
    keeper.check(REAL_NOW + offset)
    assert keeper.certificate.leaf == new


def test_symbolic_link_swap(tmp_path: Path) -> None:
    """As Kubernetes and certbot publish: the files stay, what they lead to changes."""
    make_pair(tmp_path / "2026-01", "tls")
    new = make_pair(tmp_path / "2026-02", "tls")
    live = tmp_path / "live"
    live.symlink_to("2026-01")
    keeper = CertificateKeeper.of_files(live / "tls.crt", live / "tls.key", NOW)
    assert keeper.check(NOW) == []
    swap = tmp_path / "swap"
    swap.symlink_to("2026-02")
    os.replace(swap, live)
    events = keeper.check(NOW)
    assert [type(event) for event in events] == [CertificateReplaced]
    assert keeper.certificate.leaf == new.leaf


def test_only_the_issuers_changed(tmp_path: Path) -> None:
    pair, issuer = make_pair(tmp_path), make_pair(tmp_path, "issuer")
    keeper = keeper_of(pair)
    replace_file(pair.chain, pair.chain.read_bytes() + issuer.chain.read_bytes())
    assert len(keeper.check(NOW)) == 1
    assert keeper.certificate.intermediates == (issuer.leaf,)


def test_touched_or_in_other_line_endings_is_no_change(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    keeper = keeper_of(pair)
    os.utime(pair.chain)
    pair.key.write_bytes(pair.key.read_bytes().replace(b"\n", b"\r\n"))
    assert rejections(keeper, NOW) == []


def broken_pairs(folder: Path, pair: Pair) -> dict[CertificateProblem, tuple[bytes, bytes]]:
    key = ec.generate_private_key(ec.SECP256R1())
    chain, plain = pair.chain.read_bytes(), pair.key.read_bytes()
    expired = make_pair(folder, "expired", end=NOW - timedelta(hours=1))
    early = make_pair(folder, "early", start=NOW + timedelta(hours=1))
    return {
        CertificateProblem.NOT_PEM: (b"garbage", plain),
        CertificateProblem.EMPTY: (chain, b""),
        CertificateProblem.MISMATCHED: (chain, key_pem(key)),
        CertificateProblem.ENCRYPTED: (chain, key_pem(key, b"secret")),
        CertificateProblem.EXPIRED: (expired.chain.read_bytes(), expired.key.read_bytes()),
        CertificateProblem.NOT_YET_VALID: (early.chain.read_bytes(), early.key.read_bytes()),
    }


@pytest.mark.parametrize(
    "problem",
    [
        CertificateProblem.NOT_PEM,
        CertificateProblem.EMPTY,
        CertificateProblem.MISMATCHED,
        CertificateProblem.ENCRYPTED,
        CertificateProblem.EXPIRED,
        CertificateProblem.NOT_YET_VALID,
    ],
)
def test_broken_pair_keeps_the_old_one_and_is_reported_once(
    tmp_path: Path, problem: CertificateProblem
) -> None:
    pair = make_pair(tmp_path)
    keeper = keeper_of(pair)
    doors, first = Doors(keeper), keeper.certificate
    good = pair.chain.read_bytes(), pair.key.read_bytes()
    bad = broken_pairs(tmp_path, pair)[problem]
    for round_ in range(2):  # and again after it was mended
        for path, data in zip(pair.paths, bad, strict=True):
            replace_file(path, data)
        assert keeper.check(NOW) == []
        (event,) = rejections(keeper, NOW)
        assert isinstance(event, CertificateRejected)
        assert event.problem is problem
        assert str(tmp_path) in event.message
        assert keeper.certificate is first
        assert doors.leaves() == {der(first)}
        for path, data in zip(pair.paths, good, strict=True):
            replace_file(path, data)
        assert rejections(keeper, NOW) == [], round_


def test_two_problems_in_a_row_are_two_reports(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    keeper = keeper_of(pair)
    pair.key.unlink()
    first = rejections(keeper, NOW)
    replace_file(pair.key, b"")
    second = rejections(keeper, NOW)
    assert [
        event.problem for event in first + second if isinstance(event, CertificateRejected)
    ] == [
        CertificateProblem.MISSING,
        CertificateProblem.EMPTY,
    ]


def test_early_pair_is_taken_when_its_time_has_come(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    keeper = keeper_of(pair)
    early = make_pair(tmp_path, start=NOW + timedelta(hours=1))
    assert [type(event) for event in rejections(keeper, NOW)] == [CertificateRejected]
    events = keeper.check(NOW + timedelta(hours=1))
    assert [type(event) for event in events] == [CertificateReplaced]
    assert keeper.certificate.leaf == early.leaf


def test_one_door_that_refuses_keeps_both_on_the_old(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    keeper = keeper_of(pair)
    doors, first = Doors(keeper), keeper.certificate

    def refuse_others(certificate: ServerCertificate) -> None:
        if certificate != first:
            raise CertificateError(
                CertificateProblem.UNSUPPORTED, "this door is particular", remedy="none"
            )

    keeper.subscribe(refuse_others)
    make_pair(tmp_path)
    (event,) = rejections(keeper, NOW)
    assert isinstance(event, CertificateRejected)
    assert event.problem is CertificateProblem.UNSUPPORTED
    assert doors.leaves() == {der(first)}


def test_dev_pair_is_renewed_while_running(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path / "dev", ["voice.test"])
    keeper = CertificateKeeper.of_dev(dev, NOW)
    doors, seen = Doors(keeper), [keeper.certificate]
    for hour in range(0, 24 * 30, 6):
        now = NOW + timedelta(hours=hour)
        promised = keeper.hashes()
        for event in keeper.check(now):
            assert isinstance(event, CertificateReplaced)
            # A page that was given both hashes before can still connect.
            assert event.certificate.sha256 == promised.upcoming
            seen.append(event.certificate)
            assert doors.leaves() == {der(event.certificate)}
        assert hash_refusals(keeper.certificate, now) == ()
        assert keeper.hashes().upcoming not in (None, keeper.hashes().current)
    assert len(seen) == 3
    assert {certificate.names for certificate in seen} == {
        ("localhost", "voice.test", "127.0.0.1", "::1")
    }


def test_dev_pair_after_a_long_sleep_or_a_jump_of_the_clock(tmp_path: Path) -> None:
    keeper = CertificateKeeper.of_dev(DevCertificates(tmp_path / "dev"), NOW)
    for now in (NOW + 40 * DAY, NOW + 10 * DAY):
        assert [type(event) for event in keeper.check(now)] == [CertificateReplaced]
        assert hash_refusals(keeper.certificate, now) == ()


def test_between_renewal_and_the_pair_after_it_nothing_is_promised(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path / "dev")
    keeper = CertificateKeeper.of_dev(dev, NOW)
    promised = keeper.hashes().upcoming
    shutil.copy(dev.folder / "next-key.pem", dev.key_path)
    shutil.copy(dev.next_chain_path, dev.chain_path)
    later = NOW + 11 * DAY
    assert [type(event) for event in keeper.check(later)] == [CertificateReplaced]
    assert keeper.hashes() == CertificateHashes(promised or b"", None)
    dev.ensure(later)
    assert keeper.check(later) == []
    assert keeper.hashes().upcoming is not None


def test_two_servers_share_one_folder(tmp_path: Path) -> None:
    one = CertificateKeeper.of_dev(DevCertificates(tmp_path / "dev"), NOW)
    two = CertificateKeeper.of_dev(DevCertificates(tmp_path / "dev"), NOW)
    assert one.hashes() == two.hashes()
    later = NOW + 12 * DAY
    with locked(tmp_path / "dev", patience=0):
        assert one.check(later) == []  # somebody is at it: no reason for an alarm
    assert len(one.check(later)) == 1
    assert len(two.check(later)) == 1
    assert one.certificate == two.certificate
    assert one.hashes() == two.hashes()


def test_renewal_that_fails_is_reported_once_and_tried_again(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path / "dev")
    keeper = CertificateKeeper.of_dev(dev, NOW)
    first, later = keeper.certificate, NOW + 12 * DAY
    own = make_pair(tmp_path)
    aside = tmp_path / "aside"
    shutil.copy(dev.ca_path, aside)
    shutil.copy(own.chain, dev.ca_path)
    events = [e for minute in range(5) for e in keeper.check(later + timedelta(minutes=minute))]
    (event,) = events
    assert isinstance(event, RenewalFailed)
    assert event.problem is CertificateProblem.NOT_OURS
    assert keeper.certificate == first
    shutil.copy(aside, dev.ca_path)
    assert keeper.check(later + timedelta(minutes=4, seconds=59)) == []
    (replaced,) = keeper.check(later + timedelta(minutes=5))
    assert isinstance(replaced, CertificateReplaced)


def test_own_pair_put_into_the_dev_folder_is_served_and_kept(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path / "dev")
    keeper = CertificateKeeper.of_dev(dev, NOW)
    own = make_pair(tmp_path)
    replace_file(dev.key_path, own.key.read_bytes())
    replace_file(dev.chain_path, own.chain.read_bytes())
    assert [type(event) for event in keeper.check(NOW)] == [CertificateReplaced]
    assert keeper.certificate.leaf == own.leaf
    assert keeper.hashes().upcoming is None  # nothing of ours will follow it
    assert [type(event) for event in rejections(keeper, NOW + 8 * DAY)] == [RenewalFailed]
    assert load_certificate(dev.chain_path, dev.key_path, NOW).leaf == own.leaf
