"""Pairs made by hand, handshakes to look at them with, and a fixed time."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)

Key = CertificateIssuerPrivateKeyTypes


@dataclass(frozen=True, slots=True)
class Pair:
    """A self-signed certificate and its key, in files."""

    chain: Path
    key: Path
    leaf: x509.Certificate

    @property
    def paths(self) -> tuple[Path, Path]:
        return self.chain, self.key


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def key_pem(key: Key, password: bytes | None = None) -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def make_leaf(
    key: Key,
    *,
    start: datetime = NOW - DAY,
    end: datetime = NOW + 9 * DAY,
    names: Iterable[str] = ("localhost",),
    extra: x509.ExtensionType | None = None,
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody's own")])
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )
    sans = [
        x509.IPAddress(ipaddress.ip_address(n)) if n[0].isdigit() else x509.DNSName(n)
        for n in names
    ]
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    if extra is not None:
        builder = builder.add_extension(extra, critical=False)
    return builder.sign(key, algorithm)


def make_pair(
    folder: Path,
    stem: str = "own",
    *,
    key: Key | None = None,
    start: datetime = NOW - DAY,
    end: datetime = NOW + 9 * DAY,
    names: Iterable[str] = ("localhost",),
) -> Pair:
    folder.mkdir(parents=True, exist_ok=True)
    key = key or ec.generate_private_key(ec.SECP256R1())
    leaf = make_leaf(key, start=start, end=end, names=names)
    pair = Pair(folder / f"{stem}.crt", folder / f"{stem}.key", leaf)
    pair.chain.write_bytes(leaf.public_bytes(Encoding.PEM))
    pair.key.write_bytes(key_pem(key))
    return pair


def replace_file(path: Path, data: bytes) -> None:
    """As a careful renewal does it."""
    new = path.with_name(path.name + ".tmp")
    new.write_bytes(data)
    os.replace(new, path)


def openssl(*arguments: str | Path) -> str:
    """What the `openssl` command prints; fails if it does."""
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl command on this machine"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of a handshake."""

    leaf: bytes
    version: str | None
    alpn: str | None
    session: ssl.SSLSession | None
    resumed: bool | None


def anyone() -> ssl.SSLContext:
    """A client that looks at certificates and believes all of them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def handshake(
    server: ssl.SSLContext,
    client: ssl.SSLContext,
    *,
    name: str | None = "localhost",
    host: str = "127.0.0.1",
    session: ssl.SSLSession | None = None,
) -> Seen:
    """One real handshake over loopback; the client's `ssl.SSLError` comes through."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        thread = threading.Thread(target=_answer_once, args=(listener, server))
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname()[:2], timeout=5) as raw,
                client.wrap_socket(raw, server_hostname=name, session=session) as connection,
            ):
                # The tickets come before the first byte.
                assert connection.recv(1) == b"!"
                return Seen(
                    connection.getpeercert(binary_form=True) or b"",
                    connection.version(),
                    connection.selected_alpn_protocol(),
                    connection.session,
                    connection.session_reused,
                )
        finally:
            thread.join(5)


def _answer_once(listener: socket.socket, context: ssl.SSLContext) -> None:
    raw, _ = listener.accept()
    raw.settimeout(5)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with raw:
        try:
            with context.wrap_socket(raw, server_side=True) as connection:
                connection.sendall(b"!")
                connection.recv(1)
        except OSError:
            pass  # the client gave up: it is the one that tells why
