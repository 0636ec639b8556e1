from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tenuto.tls import explain_verification, hash_refusals, read_certificate
from tests.tls.pairs import DAY, NOW, make_pair, needs_openssl, openssl, rsa_key


def reasons(folder: Path, **options: object) -> list[str]:
    pair = make_pair(folder, **options)  # type: ignore[arg-type]
    return [str(refusal) for refusal in hash_refusals(read_certificate(*pair.paths), NOW)]


def test_suitable(tmp_path: Path) -> None:
    assert reasons(tmp_path) == []


@pytest.mark.parametrize(
    ("duration", "suitable"),
    [
        (timedelta(days=13), True),
        (timedelta(days=14) - timedelta(seconds=1), True),
        (timedelta(days=14), False),
        (timedelta(days=90), False),
    ],
)
def test_two_weeks_are_too_long(tmp_path: Path, duration: timedelta, suitable: bool) -> None:
    found = reasons(tmp_path, start=NOW - DAY, end=NOW - DAY + duration)
    assert (found == []) is suitable
    if not suitable:
        assert f"{duration.days} days" in found[0]
        assert "13 days" in found[0]


def test_key(tmp_path: Path) -> None:
    (rsa,) = reasons(tmp_path, key=rsa_key())
    assert "RSA 2048" in rsa
    assert "tenuto certs" in rsa
    (p384,) = reasons(tmp_path, key=ec.generate_private_key(ec.SECP384R1()))
    assert "P-384" in p384


def test_times_are_named(tmp_path: Path) -> None:
    (expired,) = reasons(tmp_path, end=NOW - timedelta(minutes=1))
    assert "expired at 2026-01-10 11:59:00 UTC" in expired
    (early,) = reasons(tmp_path, start=NOW + timedelta(minutes=1))
    assert "not valid before 2026-01-10 12:01:00 UTC" in early


def test_every_reason_is_given(tmp_path: Path) -> None:
    found = reasons(tmp_path, key=rsa_key(), start=NOW - 400 * DAY, end=NOW - DAY)
    assert len(found) == 3


@needs_openssl
def test_version_1(tmp_path: Path) -> None:
    key, request, chain = tmp_path / "k", tmp_path / "r", tmp_path / "c"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-new", *kind, "-subj", "/CN=x", "-keyout", key, "-out", request)
    openssl("x509", "-req", "-in", request, "-signkey", key, "-days", "9", "-out", chain)
    certificate = read_certificate(chain, key)
    if certificate.leaf.version.name != "v1":
        pytest.skip("this openssl makes version 3 always")
    found = hash_refusals(certificate, certificate.not_before)
    assert ["version 3" in str(refusal) for refusal in found] == [True]


def test_unknown_verification_error_keeps_its_words() -> None:
    error = ssl.SSLCertVerificationError("x")
    error.verify_code, error.verify_message = 7, "certificate signature failure"
    assert "certificate signature failure" in explain_verification(error, NOW).reason
