from __future__ import annotations

import os
import stat
from dataclasses import FrozenInstanceError
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tenuto.errors import ErrorCode, OperatorError
from tenuto.tls import (
    CertificateError,
    CertificateProblem,
    load_certificate,
    read_certificate,
)
from tenuto.tls.pem import MAX_PEM_SIZE
from tests.tls.pairs import DAY, NOW, key_pem, make_leaf, make_pair, needs_openssl, openssl, rsa_key


def refusal(chain: Path, key: Path) -> CertificateError:
    """The one-line error; anything else that is raised fails the test."""
    with pytest.raises(OperatorError) as caught:
        load_certificate(chain, key, NOW)
    error = caught.value
    assert isinstance(error, CertificateError)
    assert str(error).isprintable()
    assert error.remedy
    assert error.code is ErrorCode.NOT_CONFIGURED
    return error


def test_good_pair(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, names=["voice.test", "10.0.0.7"])
    loaded = load_certificate(*pair.paths, NOW)
    assert (loaded.chain_path, loaded.key_path) == pair.paths
    assert loaded.sha256 == pair.leaf.fingerprint(hashes.SHA256())
    assert loaded.names == ("voice.test", "10.0.0.7")
    assert loaded.key_type == "ECDSA P-256"
    assert (loaded.not_before, loaded.not_after) == (NOW - DAY, NOW + 9 * DAY)
    assert loaded.remaining(NOW) == 9 * DAY
    assert loaded.leaf == pair.leaf
    assert loaded.intermediates == ()
    with pytest.raises(FrozenInstanceError):
        loaded.names = ()  # type: ignore[misc]


def test_key_does_not_show_in_repr(tmp_path: Path) -> None:
    loaded = load_certificate(*make_pair(tmp_path).paths, NOW)
    assert "PRIVATE" not in repr(loaded)
    assert "private_key" not in repr(loaded)


@pytest.mark.parametrize(
    ("make_key", "expected"),
    [
        (rsa_key, "RSA 2048"),
        (lambda: ec.generate_private_key(ec.SECP384R1()), "ECDSA P-384"),
        (ed25519.Ed25519PrivateKey.generate, "Ed25519"),
    ],
)
def test_other_kinds_of_key(tmp_path: Path, make_key: object, expected: str) -> None:
    assert callable(make_key)
    pair = make_pair(tmp_path, key=make_key())
    assert load_certificate(*pair.paths, NOW).key_type == expected


def test_kinds_of_key_that_one_of_the_doors_cannot_serve(tmp_path: Path) -> None:
    p521 = make_pair(tmp_path, "p521", key=ec.generate_private_key(ec.SECP521R1()))
    error = refusal(*p521.paths)
    assert error.problem is CertificateProblem.UNSUPPORTED
    assert "ECDSA P-521" in str(error)

    old = make_pair(tmp_path, "dsa", key=dsa.generate_private_key(1024))
    assert refusal(*old.paths).problem is CertificateProblem.UNSUPPORTED

    short = make_pair(tmp_path, "short", key=rsa.generate_private_key(65537, 1024))
    error = refusal(*short.paths)
    assert error.problem is CertificateProblem.UNSUPPORTED
    assert "2048" in str(error)


def test_chain_is_kept_in_order(tmp_path: Path) -> None:
    pair, issuer = make_pair(tmp_path), make_pair(tmp_path, "issuer")
    with pair.chain.open("ab") as file:
        file.write(b"\nissuer:\n" + issuer.chain.read_bytes())
    loaded = load_certificate(*pair.paths, NOW)
    assert loaded.certificates == (pair.leaf, issuer.leaf)


def test_one_file_for_both(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(pair.key.read_bytes() + pair.chain.read_bytes())
    assert load_certificate(both, both, NOW).leaf == pair.leaf


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"Bag Attributes\r\n  x: y\r\n"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r", b"  \r\n   "])
def test_text_as_other_systems_write_it(tmp_path: Path, before: bytes, newline: bytes) -> None:
    pair, issuer = make_pair(tmp_path), make_pair(tmp_path, "issuer")
    chain = pair.chain.read_bytes() + issuer.chain.read_bytes()
    pair.chain.write_bytes(before + chain.replace(b"\n", newline))
    pair.key.write_bytes(before + pair.key.read_bytes().replace(b"\n", newline))
    assert load_certificate(*pair.paths, NOW).certificates == (pair.leaf, issuer.leaf)


def test_key_after_its_parameters_in_the_traditional_format(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pair = make_pair(tmp_path, key=key)
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    old = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    pair.key.write_bytes(parameters + old)
    assert load_certificate(*pair.paths, NOW).leaf == pair.leaf


@pytest.mark.parametrize("which", ["chain", "key"])
def test_files_that_cannot_be_read(tmp_path: Path, which: str) -> None:
    pair = make_pair(tmp_path)

    def refused(path: Path) -> CertificateProblem:
        paths = (path, pair.key) if which == "chain" else (pair.chain, path)
        error = refusal(*paths)
        assert ascii(path.name)[1:-1] in str(error)
        return error.problem

    bad = tmp_path / "bad"
    assert refused(bad) is CertificateProblem.MISSING
    assert refused(tmp_path / "line\nbreak") is CertificateProblem.MISSING
    assert refused(tmp_path / "\udc80surrogate") is CertificateProblem.MISSING
    assert refused(pair.key / "below") is CertificateProblem.UNREADABLE
    assert refused(tmp_path / "nul\x00") is CertificateProblem.UNREADABLE
    assert refused(tmp_path) is CertificateProblem.UNREADABLE
    os.mkfifo(tmp_path / "fifo")
    assert refused(tmp_path / "fifo") is CertificateProblem.UNREADABLE
    bad.write_bytes(b"")
    assert refused(bad) is CertificateProblem.EMPTY
    bad.write_bytes(b" \r\n\n")
    assert refused(bad) is CertificateProblem.EMPTY
    bad.write_bytes(b"hello\n")
    assert refused(bad) is CertificateProblem.NOT_PEM
    bad.write_bytes(b"-" * (MAX_PEM_SIZE + 1))
    assert refused(bad) is CertificateProblem.UNREADABLE


def test_largest_file_is_still_read(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    text = pair.chain.read_bytes()
    pair.chain.write_bytes(b"#" * (MAX_PEM_SIZE - len(text) - 1) + b"\n" + text)
    assert load_certificate(*pair.paths, NOW).leaf == pair.leaf


def test_no_permission(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    pair.key.chmod(0)
    tmp_path.chmod(0o755)
    privileged = os.geteuid() == 0
    try:
        if privileged:
            os.seteuid(65534)
        error = refusal(*pair.paths)
    finally:
        if privileged:
            os.seteuid(0)
    assert error.problem is CertificateProblem.NOT_PERMITTED
    assert stat.S_IMODE(pair.key.stat().st_mode) == 0


def test_other_encodings_are_named(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    pair.chain.write_bytes(pair.leaf.public_bytes(Encoding.DER))
    assert "DER" in str(refusal(*pair.paths))
    pair.chain.write_text(pair.leaf.public_bytes(Encoding.PEM).decode(), "utf-16")
    assert "UTF-16" in str(refusal(*pair.paths))


@pytest.mark.parametrize("keep", [10, 100, -20, -2])
def test_half_written_file(tmp_path: Path, keep: int) -> None:
    for which in ("chain", "key"):
        pair = make_pair(tmp_path)
        path: Path = getattr(pair, which)
        path.write_bytes(path.read_bytes()[:keep])
        error = refusal(*pair.paths)
        assert error.problem is CertificateProblem.NOT_PEM
        assert str(path) in str(error)


def test_garbage_between_the_boundaries(tmp_path: Path) -> None:
    for which in ("chain", "key"):
        pair = make_pair(tmp_path)
        path: Path = getattr(pair, which)
        lines = path.read_bytes().splitlines(keepends=True)
        for body in (b"####\n", b"AAAA\n", b""):
            path.write_bytes(lines[0] + body + lines[-1])
            assert refusal(*pair.paths).problem is CertificateProblem.NOT_PEM


def test_names_that_cannot_be_parsed(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pair = make_pair(tmp_path, key=key)
    garbage = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"\x30\x7f")
    leaf = make_leaf(key, names=[], extra=garbage)
    pair.chain.write_bytes(leaf.public_bytes(Encoding.PEM))
    error = refusal(*pair.paths)
    assert error.problem is CertificateProblem.NOT_PEM
    assert "cannot be read" in str(error)


def test_encrypted_key(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pair = make_pair(tmp_path, key=key)
    pair.key.write_bytes(key_pem(key, b"secret"))
    error = refusal(*pair.paths)
    assert error.problem is CertificateProblem.ENCRYPTED
    assert "openssl pkey" in error.remedy

    pair.key.write_bytes(
        b"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n"
        b"AAAA\n-----END EC PRIVATE KEY-----\n"
    )
    assert refusal(*pair.paths).problem is CertificateProblem.ENCRYPTED


def test_key_of_another_certificate(tmp_path: Path) -> None:
    one, two = make_pair(tmp_path, "one"), make_pair(tmp_path, "two", key=rsa_key())
    error = refusal(one.chain, two.key)
    assert error.problem is CertificateProblem.MISMATCHED
    assert "one.crt" in str(error)
    assert "two.key" in str(error)


def test_leaf_that_is_not_the_first(tmp_path: Path) -> None:
    leaf, issuer = make_pair(tmp_path), make_pair(tmp_path, "issuer")
    leaf.chain.write_bytes(issuer.chain.read_bytes() + leaf.chain.read_bytes())
    error = refusal(*leaf.paths)
    assert error.problem is CertificateProblem.MISMATCHED
    assert "first in the file" in error.remedy


def test_swapped_arguments(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    assert "swapped" in str(refusal(pair.key, pair.chain))
    assert "swapped" in str(refusal(pair.chain, pair.chain))
    other = b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"
    (tmp_path / "crl").write_bytes(other)
    assert "but no certificate" in str(refusal(tmp_path / "crl", pair.key))
    assert "but no private key" in str(refusal(pair.chain, tmp_path / "crl"))


def test_expired_and_not_yet_valid_name_both_times(tmp_path: Path) -> None:
    expired = make_pair(tmp_path, "old", start=NOW - 9 * DAY, end=NOW - timedelta(seconds=1))
    error = refusal(*expired.paths)
    assert error.problem is CertificateProblem.EXPIRED
    assert "2026-01-10 11:59:59 UTC" in str(error)
    assert "2026-01-10 12:00:00 UTC" in str(error)

    early = make_pair(tmp_path, "new", start=NOW + timedelta(hours=2))
    error = refusal(*early.paths)
    assert error.problem is CertificateProblem.NOT_YET_VALID
    assert "2026-01-10 14:00:00 UTC" in str(error)
    assert "2026-01-10 12:00:00 UTC" in str(error)
    assert "clock" in error.remedy
    assert read_certificate(*early.paths).not_before == NOW + timedelta(hours=2)


def test_both_ends_belong_to_the_validity(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    elsewhere = timezone(timedelta(hours=-7))
    for now in (NOW - DAY, NOW + 9 * DAY, (NOW + 9 * DAY).astimezone(elsewhere)):
        assert load_certificate(*pair.paths, now).leaf == pair.leaf


def test_no_names_at_all(tmp_path: Path) -> None:
    paths = make_pair(tmp_path, names=[]).paths
    assert read_certificate(*paths).names == ()
    with pytest.raises(CertificateError, match="subjectAltName") as caught:
        load_certificate(*paths, NOW)
    assert caught.value.problem is CertificateProblem.NAMELESS


@needs_openssl
def test_pair_made_by_openssl(tmp_path: Path) -> None:
    chain, key = tmp_path / "o.crt", tmp_path / "o.key"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10")
    names = ("-subj", "/CN=x", "-addext", "subjectAltName=DNS:x.test,IP:::1")
    openssl("req", "-x509", *kind, *names, "-keyout", key, "-out", chain)
    loaded = read_certificate(chain, key)
    assert (loaded.names, loaded.key_type) == (("x.test", "::1"), "ECDSA P-256")
    printed = openssl("x509", "-in", chain, "-noout", "-fingerprint", "-sha256")
    assert loaded.sha256.hex(":").upper() in printed


def test_equal_when_they_serve_the_same(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pair = make_pair(tmp_path, key=key)
    first = load_certificate(*pair.paths, NOW)
    assert load_certificate(*pair.paths, NOW) == first
    pair.chain.write_bytes(make_leaf(key).public_bytes(Encoding.PEM))
    assert load_certificate(*pair.paths, NOW) != first
