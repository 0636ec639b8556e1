from __future__ import annotations

import gc
import os
import socket
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

import tenuto.tls.context
from tenuto.tls import (
    CertificateError,
    CertificateProblem,
    DevCertificates,
    client_context,
    explain_verification,
    install,
    load_certificate,
    read_certificate,
    server_context,
)
from tenuto.tls.issue import Issued, issue_leaf
from tests.tls.pairs import (
    anyone,
    handshake,
    make_leaf,
    make_pair,
    needs_openssl,
    openssl,
    rsa_key,
)

# OpenSSL verifies by the real clock, so these pairs are valid by it.
REAL_NOW = datetime.now(UTC)
END = REAL_NOW + timedelta(days=5)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_dev_pair_is_trusted_by_its_ca_and_each_of_its_names(tmp_path: Path, host: str) -> None:
    if host == "::1":
        try:
            socket.create_server((host, 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("no IPv6 here")
    dev = DevCertificates(tmp_path / "dév 1")
    server = server_context(dev.ensure(REAL_NOW).current)
    client = client_context(dev.ca_path)
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    for name in ("localhost", "127.0.0.1", "::1"):
        seen = handshake(server, client, name=name, host=host)
        assert (seen.version, seen.alpn) == ("TLSv1.3", "http/1.1")
        assert seen.leaf == dev.ensure(REAL_NOW).current.leaf.public_bytes(Encoding.DER)


def test_server_offers_http_1_only(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, end=END)
    server = server_context(load_certificate(*pair.paths, REAL_NOW))
    client = anyone()
    client.set_alpn_protocols(["h2", "http/1.1"])
    assert handshake(server, client).alpn == "http/1.1"
    client.set_alpn_protocols(["h2"])
    assert handshake(server, client).alpn is None


def test_tls_1_2_is_refused(tmp_path: Path) -> None:
    server = server_context(load_certificate(*make_pair(tmp_path, end=END).paths, REAL_NOW))
    client = anyone()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="(?i)protocol.version"):
        handshake(server, client)


@pytest.mark.parametrize("name", ["localhost", "elsewhere.test", None])
def test_installed_pair_is_served_even_if_its_key_is_of_another_type(
    tmp_path: Path, name: str | None
) -> None:
    first = load_certificate(*make_pair(tmp_path, "ec", end=END).paths, REAL_NOW)
    second = load_certificate(*make_pair(tmp_path, "rsa", key=rsa_key(), end=END).paths, REAL_NOW)
    context = server_context(first)
    for certificate in (first, second, first):
        install(context, certificate)
        gc.collect()
        seen = handshake(context, anyone(), name=name)
        assert seen.leaf == certificate.leaf.public_bytes(Encoding.DER)
        assert (seen.version, seen.alpn) == ("TLSv1.3", None)


def test_ticket_from_before_resumes_afterwards(tmp_path: Path) -> None:
    first = load_certificate(*make_pair(tmp_path, "a", end=END).paths, REAL_NOW)
    second = load_certificate(*make_pair(tmp_path, "b", end=END).paths, REAL_NOW)
    context, client = server_context(first), anyone()
    session = handshake(context, client).session
    install(context, second)
    assert handshake(context, client, session=session).resumed
    assert handshake(context, client).leaf == second.leaf.public_bytes(Encoding.DER)


def test_refused_pair_leaves_the_former(tmp_path: Path) -> None:
    good = load_certificate(*make_pair(tmp_path, end=END).paths, REAL_NOW)
    context = server_context(good)
    bad = make_pair(tmp_path, "bad", end=END)
    bad.chain.write_bytes(make_leaf(rsa_key()).public_bytes(Encoding.PEM))
    short = read_certificate(*make_pair(tmp_path, "r", key=rsa_key(), end=END).paths)
    mixed = type(good)(
        bad.chain, bad.key, short.certificates, good.private_key, short.sha256,
        short.not_before, short.not_after, short.names, short.key_type,
    )  # fmt: skip
    with pytest.raises(CertificateError) as caught:
        install(context, mixed)
    assert caught.value.problem is CertificateProblem.UNSUPPORTED
    assert handshake(context, anyone()).leaf == good.leaf.public_bytes(Encoding.DER)


def test_chain_goes_on_the_wire(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path)
    dev.ensure(REAL_NOW)
    both = tmp_path / "both.pem"
    both.write_bytes(dev.chain_path.read_bytes() + dev.ca_path.read_bytes())
    loaded = load_certificate(both, dev.key_path, REAL_NOW)
    assert len(loaded.intermediates) == 1
    assert handshake(server_context(loaded), client_context(dev.ca_path)).version == "TLSv1.3"


@pytest.mark.parametrize("in_memory", [True, False])
def test_key_is_left_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if in_memory and not tenuto.tls.context.MEMORY_FILES:
        pytest.skip("no files in memory on this system")
    monkeypatch.setattr(tenuto.tls.context, "MEMORY_FILES", in_memory)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    pair = make_pair(tmp_path, end=END)
    loaded = load_certificate(*pair.paths, REAL_NOW)
    before = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0
    context = server_context(loaded)
    assert list(scratch.iterdir()) == []
    if before:
        assert len(os.listdir("/dev/fd")) == before
    assert handshake(context, anyone()).leaf == loaded.leaf.public_bytes(Encoding.DER)


def test_no_place_for_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_pair(tmp_path, end=END)
    monkeypatch.setattr(tenuto.tls.context, "MEMORY_FILES", False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with pytest.raises(CertificateError) as caught:
        load_certificate(*pair.paths, REAL_NOW)
    assert caught.value.problem is CertificateProblem.UNREADABLE


def test_client_trusts_only_the_given_ca(tmp_path: Path) -> None:
    dev, other = DevCertificates(tmp_path / "a"), DevCertificates(tmp_path / "b")
    server = server_context(dev.ensure(REAL_NOW).current)
    other.ensure(REAL_NOW)
    for client in (client_context(other.ca_path), client_context()):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            handshake(server, client)
        assert "nobody this client trusts" in str(explain_verification(caught.value, REAL_NOW))


def test_client_explains_a_wrong_name(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path)
    server = server_context(dev.ensure(REAL_NOW).current)
    for name in ("voice.test", "127.0.0.2"):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            handshake(server, client_context(dev.ca_path), name=name)
        assert "for other names" in str(explain_verification(caught.value, REAL_NOW))


def test_ca_cannot_vouch_for_other_hosts(tmp_path: Path) -> None:
    """Whoever steals the development CA's key gains no host name but localhost."""
    dev = DevCertificates(tmp_path / "dev")
    ca = dev.ensure(REAL_NOW).ca
    made = issue_leaf(Issued(ca.leaf, ca.private_key), ["bank.test"], REAL_NOW)
    chain, key = tmp_path / "evil.crt", tmp_path / "evil.key"
    chain.write_bytes(made.certificate_pem)
    key.write_bytes(made.key_pem)
    server = server_context(load_certificate(chain, key, REAL_NOW))
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        handshake(server, client_context(dev.ca_path), name="bank.test")


@pytest.mark.parametrize(
    ("offset", "succeeds", "words"),
    [
        (timedelta(seconds=30), True, ""),
        (timedelta(hours=2), False, "not valid yet"),
        (timedelta(days=-20), False, "has expired"),
    ],
)
def test_clock_of_the_client_is_wrong(
    tmp_path: Path, offset: timedelta, succeeds: bool, words: str
) -> None:
    """Made by a server whose clock differs from this client's by `offset`."""
    dev = DevCertificates(tmp_path)
    server_now = REAL_NOW + offset
    pair = dev.ensure(server_now)
    server, client = server_context(pair.current), client_context(dev.ca_path)
    if succeeds:
        assert handshake(server, client).version == "TLSv1.3"
        return
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        handshake(server, client)
    explained = explain_verification(caught.value, REAL_NOW)
    assert words in explained.reason
    assert f"{REAL_NOW:%Y-%m-%d %H:%M:%S} UTC" in explained.reason


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, CertificateProblem.MISSING),
        (b"", CertificateProblem.EMPTY),
        (b"key", CertificateProblem.NOT_PEM),
        (b"-----BEGIN X-----\nAAAA\n-----END X-----\n", CertificateProblem.NOT_PEM),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            CertificateProblem.NOT_PEM,
        ),
    ],
)
def test_unusable_ca(tmp_path: Path, content: bytes | None, problem: CertificateProblem) -> None:
    ca = tmp_path / "ca.pem"
    if content is not None:
        ca.write_bytes(content)
    with pytest.raises(CertificateError) as caught:
        client_context(ca)
    assert caught.value.problem is problem
    assert "ca.pem" in str(caught.value)


def test_ca_with_other_line_endings_beside_its_key(tmp_path: Path) -> None:
    dev = DevCertificates(tmp_path)
    server = server_context(dev.ensure(REAL_NOW).current)
    bundle = tmp_path / "bundle.pem"
    text = (tmp_path / "ca-key.pem").read_bytes() + dev.ca_path.read_bytes()
    bundle.write_bytes(text.replace(b"\n", b"\r\n"))
    assert handshake(server, client_context(bundle)).version == "TLSv1.3"


@needs_openssl
def test_a_common_name_vouches_for_nobody(tmp_path: Path) -> None:
    """As over QUIC; with a subjectAltName the same pair would do."""
    chain, key = tmp_path / "n.crt", tmp_path / "n.key"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
    for names, trusted in (((), False), (("-addext", "subjectAltName=DNS:localhost"), True)):
        subject = ("-subj", "/CN=localhost", *names)
        openssl("req", "-x509", *kind, *subject, "-keyout", key, "-out", chain)
        server = server_context(read_certificate(chain, key))
        if trusted:
            assert handshake(server, client_context(chain)).version == "TLSv1.3"
        else:
            with pytest.raises(ssl.SSLCertVerificationError, match="[Hh]ostname"):
                handshake(server, client_context(chain))
