"""A certificate with its key, as both doors take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

__all__ = ["PrivateKey", "ServerCertificate"]

PrivateKey = (
    ec.EllipticCurvePrivateKey
    | rsa.RSAPrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)
"""The kinds that both OpenSSL and aioquic sign with."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A pair that was read at one moment and belongs together.

    The parsed objects travel with it, so that nobody reads the files a second time, when
    they may be others. `certificates` begins with the leaf. Two are equal when they serve
    the same chain from the same paths.
    """

    chain_path: Path
    key_path: Path
    certificates: tuple[x509.Certificate, ...] = field(repr=False)
    private_key: PrivateKey = field(repr=False, compare=False)
    sha256: bytes
    """SHA-256 of the leaf's DER, as `serverCertificateHashes` wants it."""
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...]
    key_type: str

    @property
    def leaf(self) -> x509.Certificate:
        return self.certificates[0]

    @property
    def intermediates(self) -> tuple[x509.Certificate, ...]:
        """What follows the leaf on the wire."""
        return self.certificates[1:]

    def remaining(self, now: datetime) -> timedelta:
        """Time until it expires; negative afterwards."""
        return self.not_after - now

    def derive_key(self, purpose: bytes) -> bytes:
        """A secret of 32 bytes that whoever serves this private key can derive again."""
        key = self.private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return HKDF(hashes.SHA256(), 32, salt=None, info=purpose).derive(key)

    def to_pem(self) -> bytes:
        """The unencrypted key and the chain in one text, for a private file."""
        key = self.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + b"".join(c.public_bytes(Encoding.PEM) for c in self.certificates)
