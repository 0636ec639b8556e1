from __future__ import annotations

import ipaddress
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tenuto.errors import OperatorError
from tenuto.tls import (
    RENEW_BEFORE,
    CertificateError,
    CertificateProblem,
    DevCertificates,
    ServerCertificate,
    hash_refusals,
    load_certificate,
)
from tenuto.tls.folder import locked
from tenuto.tls.issue import covers
from tests.tls.pairs import DAY, NOW, make_leaf, make_pair, needs_openssl, openssl

GENERATED = {"ca.pem", "ca-key.pem", "cert.pem", "key.pem", "next-cert.pem", "next-key.pem"}


def dev_in(folder: Path, *names: str) -> DevCertificates:
    return DevCertificates(folder, names)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def test_leaf_is_what_browsers_and_strict_verifiers_ask_for(tmp_path: Path) -> None:
    pair = dev_in(tmp_path / "dev").ensure(NOW)
    leaf, ca = pair.current.leaf, pair.ca.leaf
    extensions = leaf.extensions

    key = leaf.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert leaf.not_valid_before_utc == NOW - timedelta(hours=1)
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc == 13 * DAY
    san = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert san.get_values_for_type(x509.DNSName) == ["localhost"]
    assert san.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_cert_sign
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    authority = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    issuer = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert authority.key_identifier == issuer.digest
    leaf.verify_directly_issued_by(ca)
    assert hash_refusals(pair.current, NOW) == ()


def test_ca_can_vouch_for_the_given_host_names_only(tmp_path: Path) -> None:
    pair = dev_in(tmp_path / "dev", "*.voice.test").ensure(NOW)
    extensions = pair.ca.leaf.extensions
    constraints = extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    assert set(constraints.value.permitted_subtrees or ()) == {
        x509.DNSName("localhost"),
        x509.DNSName("voice.test"),
    }  # and no addresses, for which BoringSSL would refuse it
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)


@needs_openssl
def test_openssl_reads_and_verifies_the_same(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    pair = dev.ensure(NOW)
    text = openssl("x509", "-in", dev.chain_path, "-noout", "-text", "-fingerprint", "-sha256")
    for expected in (
        "Public Key Algorithm: id-ecPublicKey",
        "ASN1 OID: prime256v1",
        "Signature Algorithm: ecdsa-with-SHA256",
        "Not Before: Jan 10 11:00:00 2026 GMT",
        "Not After : Jan 23 11:00:00 2026 GMT",
        "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
        "TLS Web Server Authentication",
        "CN = localhost",
        "CA:FALSE",
        "Digital Signature",
    ):
        assert expected in text.replace("CN=", "CN = ")
    assert pair.current.sha256.hex(":").upper() in text
    strict = ("-x509_strict", "-attime", str(int(NOW.timestamp())))
    named = ("-verify_hostname", "localhost", "-CAfile", dev.ca_path)
    openssl("verify", *strict, *named, dev.chain_path)


def test_files_are_private_and_complete(tmp_path: Path) -> None:
    folder = tmp_path / "not there yet" / "dev"
    old_umask = os.umask(0)
    try:
        dev_in(folder).ensure(NOW)
    finally:
        os.umask(old_umask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
    assert {name for name in modes if not name.startswith(".")} == GENERATED
    assert {name: modes[name] for name in modes if "key" in name} == {
        "ca-key.pem": 0o600,
        "key.pem": 0o600,
        "next-key.pem": 0o600,
    }


def test_path_with_spaces_and_unicode(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "mein Ordner" / "зерно 声音 ♪")
    made = dev.ensure(NOW)
    assert load_certificate(dev.chain_path, dev.key_path, NOW) == made.current


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    assert (first.renewed, first.new_ca) == (True, True)
    before = contents(dev.folder)
    second = dev_in(tmp_path / "dev").ensure(NOW + 10 * DAY)
    assert (second.renewed, second.new_ca) == (False, False)
    assert second.current == first.current
    assert contents(dev.folder) == before


@pytest.mark.parametrize("days", [11, 12, 13, 14])
def test_days_later_the_prepared_pair_takes_over(tmp_path: Path, days: int) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    later = NOW + days * DAY
    second = dev.ensure(later)
    assert second.renewed
    assert not second.new_ca
    assert second.current.sha256 == first.next_pair.sha256
    assert second.current.not_before <= later - timedelta(hours=1)
    assert second.next_pair.sha256 not in (first.current.sha256, second.current.sha256)
    assert hash_refusals(second.current, later) == ()


def test_prepared_pair_is_valid_an_hour_before_it_is_due(tmp_path: Path) -> None:
    pair = dev_in(tmp_path / "dev").ensure(NOW)
    due = pair.current.not_after - RENEW_BEFORE
    assert pair.next_pair.not_before == due - timedelta(hours=1)
    assert pair.next_pair.not_after - pair.next_pair.not_before == 13 * DAY


def test_a_year_of_starts_keeps_every_promise(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    before = dev.ensure(NOW)
    changes_of_ca = 0
    for day in range(2, 366, 2):
        now = NOW + day * DAY
        pair = dev.ensure(now)
        assert hash_refusals(pair.current, now) == ()
        assert pair.current.remaining(now) >= RENEW_BEFORE
        assert pair.ca.not_after > pair.next_pair.not_after
        changes_of_ca += pair.new_ca
        if pair.renewed and not pair.new_ca:
            assert pair.current.sha256 == before.next_pair.sha256
        before = pair
    assert changes_of_ca == 1


def test_after_a_long_absence_all_leaves_are_new_and_the_ca_is_not(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    second = dev.ensure(NOW + 60 * DAY)
    assert second.ca == first.ca
    known = {first.current.sha256, first.next_pair.sha256}
    assert second.current.sha256 not in known
    assert second.next_pair.sha256 not in known


def test_clock_that_was_ahead_when_they_were_made(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    dev.ensure(NOW + 20 * DAY)
    pair = dev.ensure(NOW)
    assert pair.new_ca
    assert hash_refusals(pair.current, NOW) == ()


def test_names_are_added_and_then_stay(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    first = dev_in(folder).ensure(NOW)
    second = dev_in(folder, "Bücher.test", "[fd00::7]", "Bücher.test").ensure(NOW)
    assert second.renewed
    assert second.new_ca  # the first one is not permitted to sign these
    assert second.ca != first.ca
    wanted = ("localhost", "xn--bcher-kva.test", "127.0.0.1", "::1", "fd00::7")
    assert second.current.names == wanted
    renewed = dev_in(folder).ensure(NOW + 12 * DAY)
    assert (renewed.renewed, renewed.new_ca) == (True, False)
    assert renewed.current.names == wanted


@pytest.mark.parametrize(
    "name",
    [
        "",
        "https://localhost:4433",
        "localhost:4433",
        "a b",
        "a..b",
        "-a",
        "a" * 64,
        "fe80::1%eth0",
        "\udc80",
        "*",
        "a.*.b",
        "x" * 300,
        "caf\x00e",
    ],
)
def test_bad_name_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(CertificateError) as caught:
        dev_in(tmp_path / "dev", name)
    assert caught.value.problem is CertificateProblem.BAD_NAME
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "dev").exists()


def test_too_many_names(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="at most 100"):
        dev_in(tmp_path, *(f"host-{n}.test" for n in range(98)))
    dev_in(tmp_path, *(f"host-{n}.test" for n in range(97)))


@pytest.mark.parametrize("theirs", ["cert.pem", "key.pem", "ca.pem", "ca-key.pem"])
@pytest.mark.parametrize("beside_ours", [False, True])
def test_own_file_is_never_overwritten(tmp_path: Path, theirs: str, beside_ours: bool) -> None:
    dev = dev_in(tmp_path / "dev")
    own = make_pair(tmp_path / "own")
    if beside_ours:
        dev.ensure(NOW)
    else:
        dev.folder.mkdir()
    source = own.key if "key" in theirs else own.chain
    shutil.copy(source, dev.folder / theirs)
    before = contents(dev.folder)
    for now in (NOW, NOW + 12 * DAY, NOW + 400 * DAY):
        with pytest.raises(OperatorError) as caught:
            dev.ensure(now)
        assert str(dev.folder / theirs) in str(caught.value)
        assert "choose another folder" in str(caught.value)
    assert contents(dev.folder) == before


@pytest.mark.parametrize("dangling", [False, True])
def test_link_to_somewhere_else_is_not_ours(tmp_path: Path, dangling: bool) -> None:
    dev = dev_in(tmp_path / "dev")
    dev.ensure(NOW)
    target = tmp_path / "elsewhere.pem"
    if not dangling:
        shutil.copy(dev.key_path, target)
    dev.key_path.unlink()
    dev.key_path.symlink_to(target)
    with pytest.raises(CertificateError) as caught:
        dev.ensure(NOW + 12 * DAY)
    assert caught.value.problem is CertificateProblem.NOT_OURS
    assert dev.key_path.is_symlink()


@pytest.mark.parametrize("name", sorted(GENERATED))
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "garbled"])
def test_damage_to_our_own_files_is_repaired(tmp_path: Path, name: str, damage: str) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    path = dev.folder / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        mark, body = data.split(b"\n", 1)
        garbled = mark + b"\n" + body.replace(b"M", b"?")
        path.write_bytes({"empty": b"", "cut": data[:-40], "garbled": garbled}[damage])
    pair = dev.ensure(NOW)
    assert load_certificate(dev.chain_path, dev.key_path, NOW) == pair.current
    pair.current.leaf.verify_directly_issued_by(pair.ca.leaf)
    if not name.startswith("ca"):
        assert pair.ca == first.ca


def test_promotion_cut_between_its_two_files_is_completed(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    shutil.copy(dev.folder / "next-key.pem", dev.key_path)
    with pytest.raises(CertificateError) as caught:
        load_certificate(dev.chain_path, dev.key_path, NOW)
    assert caught.value.problem is CertificateProblem.MISMATCHED
    assert dev.ensure(NOW + 12 * DAY).current.sha256 == first.next_pair.sha256


def test_left_over_temporary_file_does_not_leak_the_next_key(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    dev.folder.mkdir()
    trap = tmp_path / "trap"
    (dev.folder / ".key.pem.new").symlink_to(trap)
    dev.ensure(NOW)
    assert not trap.exists()
    assert not any(path.name.endswith(".new") for path in dev.folder.iterdir())


def test_many_at_once_agree_on_one_pair(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        pairs = list(pool.map(lambda _: dev_in(tmp_path / "dev").ensure(NOW), range(8)))
    assert len({(p.current.sha256, p.next_pair.sha256, p.ca.sha256) for p in pairs}) == 1
    assert [p.renewed for p in pairs].count(True) == 1


def test_lock_held_by_another_process(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    with locked(dev.folder, patience=0), pytest.raises(CertificateError) as caught:
        dev.ensure(NOW, patience=0)
    assert caught.value.problem is CertificateProblem.BUSY
    assert dev.ensure(NOW, patience=0).renewed


def test_file_that_cannot_be_written_is_named_and_the_rest_stays(tmp_path: Path) -> None:
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    (dev.folder / ".cert.pem.new" / "occupied").mkdir(parents=True)
    with pytest.raises(CertificateError) as caught:
        dev.ensure(NOW + 12 * DAY)
    assert caught.value.problem is CertificateProblem.UNWRITABLE
    assert "cert.pem" in str(caught.value)
    (dev.folder / ".cert.pem.new" / "occupied").rmdir()
    (dev.folder / ".cert.pem.new").rmdir()
    assert dev.ensure(NOW + 12 * DAY).current.sha256 == first.next_pair.sha256


def test_authority_without_constraints_permits_nothing_of_ours() -> None:
    unconstrained = make_leaf(ec.generate_private_key(ec.SECP256R1()))
    assert not covers(unconstrained, ["localhost"])


def test_another_address_needs_no_new_authority(tmp_path: Path) -> None:
    first = dev_in(tmp_path / "dev").ensure(NOW)
    second = dev_in(tmp_path / "dev", "192.0.2.7", "fd00::7").ensure(NOW)
    assert (second.renewed, second.new_ca) == (True, False)
    assert second.ca == first.ca
    assert second.current.names[-2:] == ("192.0.2.7", "fd00::7")
    second.current.leaf.verify_directly_issued_by(first.ca.leaf)


def test_authority_that_boringssl_refuses_is_replaced(tmp_path: Path) -> None:
    """Earlier versions constrained addresses too."""
    dev = dev_in(tmp_path / "dev")
    first = dev.ensure(NOW)
    old = with_address_constraints(first.ca)
    assert not covers(old, ["localhost"])
    mark = dev.ca_path.read_bytes().split(b"\n", 1)[0]
    dev.ca_path.write_bytes(mark + b"\n" + old.public_bytes(Encoding.PEM))
    second = dev.ensure(NOW)
    assert (second.renewed, second.new_ca) == (True, True)
    assert covers(second.ca.leaf, ["localhost", "127.0.0.1"])
    assert dev.ensure(NOW).ca == second.ca


def with_address_constraints(ca: ServerCertificate) -> x509.Certificate:
    leaf = ca.leaf
    builder = (
        x509.CertificateBuilder()
        .subject_name(leaf.subject)
        .issuer_name(leaf.issuer)
        .public_key(leaf.public_key())
        .serial_number(leaf.serial_number)
        .not_valid_before(leaf.not_valid_before_utc)
        .not_valid_after(leaf.not_valid_after_utc)
    )
    for extension in leaf.extensions:
        value = extension.value
        if isinstance(value, x509.NameConstraints):
            address = x509.IPAddress(ipaddress.ip_network("127.0.0.1/32"))
            value = x509.NameConstraints([*(value.permitted_subtrees or ()), address], None)
        builder = builder.add_extension(value, critical=extension.critical)
    assert isinstance(ca.private_key, ec.EllipticCurvePrivateKey)
    return builder.sign(ca.private_key, hashes.SHA256())


@pytest.mark.parametrize("where", ["file", "file/below", "nul\x00"])
def test_folder_that_cannot_be_made(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CertificateError) as caught:
        dev_in(tmp_path / where).ensure(NOW)
    assert caught.value.problem is CertificateProblem.UNWRITABLE
    assert str(caught.value).isprintable()


def test_a_derived_key_follows_the_private_key_and_the_purpose(tmp_path: Path) -> None:
    pair = DevCertificates(tmp_path / "one").ensure(NOW)
    again = DevCertificates(tmp_path / "one").ensure(NOW)
    other = DevCertificates(tmp_path / "two").ensure(NOW)
    key = pair.current.derive_key(b"resets")
    assert len(key) == 32
    assert again.current.derive_key(b"resets") == key
    assert len({key, pair.current.derive_key(b"others"), other.current.derive_key(b"resets")}) == 3
