"""TLS contexts of the TCP door and its clients (RFC 8446 only, HTTP/1.1 only)."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenuto.tls.certificate import ServerCertificate
from tenuto.tls.pem import pem_blocks, read_file
from tenuto.tls.problems import CertificateError, CertificateProblem, shown

__all__ = ["ALPN", "client_context", "install", "server_context"]

ALPN = ("http/1.1",)

# Where memory can have a path, the key touches no disk and a read-only system will do.
MEMORY_FILES = sys.platform == "linux" and Path("/proc/self/fd").is_dir()


def server_context(certificate: ServerCertificate) -> ssl.SSLContext:
    """A context that lives as long as its listener; `install` gives it other pairs."""
    context = _bare_context()
    install(context, certificate)
    return context


def install(context: ssl.SSLContext, certificate: ServerCertificate) -> None:
    """Let handshakes that begin from now on use `certificate`; running ones go on.

    Raises `CertificateError` if OpenSSL refuses the pair: the former one then stays.
    """
    # Not load_cert_chain on `context` itself: OpenSSL keeps one certificate for each type of
    # key, so after a change from ECDSA to RSA it would go on to serve the old one; and a
    # failure between chain and key would spoil it. The callback runs for every ClientHello,
    # also without a server name. Tickets belong to `context`, so resumption survives.
    replacement = _bare_context()
    _load(replacement, certificate)

    def choose(connection: ssl.SSLObject, name: str | None, original: ssl.SSLContext) -> None:
        connection.context = replacement

    context.sni_callback = choose


def client_context(ca: Path | None = None) -> ssl.SSLContext:
    """A verifying client's context that trusts `ca` alone, or the system's store."""
    if ca is None:
        context = ssl.create_default_context()
    else:
        context = ssl.create_default_context(cadata=_authorities(ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.hostname_checks_common_name = False  # As QUIC does it, and every browser.
    context.set_alpn_protocols(list(ALPN))
    return context


def _authorities(ca: Path) -> str:
    blocks = [block for block in pem_blocks(read_file(ca), ca) if block.is_certificate]
    try:
        text = b"".join(block.data for block in blocks).decode("ascii")
        ssl.create_default_context(cadata=text or None)
    except (ssl.SSLError, ValueError):
        blocks = []
    if not blocks:
        raise CertificateError(
            CertificateProblem.NOT_PEM,
            f"{shown(ca)} holds no certificate that can be trusted",
            remedy="name the CA's certificate in PEM, such as certs/dev/ca.pem",
        )
    return text


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(list(ALPN))
    return context


def _load(context: ssl.SSLContext, certificate: ServerCertificate) -> None:
    try:
        with _private_file(certificate.to_pem()) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise CertificateError(
            CertificateProblem.UNSUPPORTED,
            f"OpenSSL refuses {shown(certificate.chain_path)}: {error.reason or error}",
            remedy="use an ECDSA P-256 key, or RSA of at least 2048 bits, signed with SHA-256",
        ) from None
    except OSError as error:
        raise CertificateError(
            CertificateProblem.UNREADABLE,
            f"cannot hand {shown(certificate.chain_path)} to OpenSSL: {error.strerror}",
            remedy="see that files can be opened and that the temporary folder is writable",
        ) from None


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """A path that OpenSSL can open and nobody else can read; gone afterwards."""
    if sys.platform == "linux" and MEMORY_FILES:
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as memory:
                memory.write(data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pair.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        yield path
