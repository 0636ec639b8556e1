"""Read a certificate and its key from files, and say in words what is wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from tenuto.tls.certificate import PrivateKey, ServerCertificate
from tenuto.tls.context import server_context
from tenuto.tls.pem import PemBlock, pem_blocks, read_file
from tenuto.tls.problems import CertificateError, CertificateProblem, shown

__all__ = ["check_validity", "key_type", "load_certificate", "read_certificate", "read_chain"]

_CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}

# aioquic 1.7 has no server signature for P-521, and browsers have none either.
_SERVED_CURVES = ("secp256r1", "secp384r1")


def load_certificate(chain_path: Path, key_path: Path, now: datetime) -> ServerCertificate:
    """A pair that both doors can serve at `now`, or a `CertificateError`."""
    certificate = read_certificate(chain_path, key_path)
    check_validity(certificate, now)
    check_names(certificate)
    server_context(certificate)  # OpenSSL has conditions of its own, such as the size of a key
    return certificate


def check_names(certificate: ServerCertificate) -> None:
    """Refuse a certificate for nobody: clients ignore its common name (RFC 9525 section 2)."""
    if not certificate.names:
        raise CertificateError(
            CertificateProblem.NAMELESS,
            f"{shown(certificate.chain_path)} names no host (it has no subjectAltName)",
            remedy="have it issued with the names that clients use, such as DNS:voice.example",
        )


def read_certificate(chain_path: Path, key_path: Path) -> ServerCertificate:
    """A pair that belongs together, whatever its dates; for those who ask why.

    The two paths may name one file that holds both.
    """
    chain = read_chain(chain_path)
    private_key = _read_private_key(key_path)
    try:
        _check_match(chain, private_key, chain_path, key_path)
        names = _names(chain[0])
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        raise _malformed(chain_path, error) from None
    return ServerCertificate(
        chain_path=chain_path,
        key_path=key_path,
        certificates=tuple(chain),
        private_key=private_key,
        sha256=chain[0].fingerprint(hashes.SHA256()),
        not_before=chain[0].not_valid_before_utc,
        not_after=chain[0].not_valid_after_utc,
        names=names,
        key_type=key_type(chain[0]),
    )


def read_chain(path: Path) -> list[x509.Certificate]:
    """The certificates of a file, in order; at least one."""
    blocks = pem_blocks(read_file(path), path)
    chain = [block for block in blocks if block.is_certificate]
    if not chain:
        swapped = any(block.is_private_key for block in blocks)
        raise CertificateError(
            CertificateProblem.NOT_PEM,
            f"{shown(path)} holds {'a private key' if swapped else 'PEM'}, but no certificate",
            remedy="are certificate and key swapped?" if swapped else "name the certificate",
        )
    try:
        return [x509.load_pem_x509_certificate(block.data) for block in chain]
    except ValueError as error:
        raise _malformed(path, error) from None


def check_validity(certificate: ServerCertificate, now: datetime) -> None:
    """Raise `CertificateError`, naming both times, if `now` is outside the validity."""
    path, clock = shown(certificate.chain_path), f"this machine's clock says {_utc(now)}"
    if now < certificate.not_before:
        raise CertificateError(
            CertificateProblem.NOT_YET_VALID,
            f"{path} is not valid before {_utc(certificate.not_before)}, but {clock}",
            remedy="if the clock is wrong, set it; else have it issued with an earlier start",
        )
    if now > certificate.not_after:
        raise CertificateError(
            CertificateProblem.EXPIRED,
            f"{path} expired at {_utc(certificate.not_after)}, and {clock}",
            remedy="if the clock is right, renew the certificate",
        )


def key_type(certificate: x509.Certificate) -> str:
    """Such as `ECDSA P-256`, `RSA 2048` or `Ed25519`."""
    key = certificate.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"ECDSA {_CURVES.get(key.curve.name, key.curve.name)}"
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size}"
    return type(key).__name__.lstrip("_").removesuffix("PublicKey")


def _read_private_key(path: Path) -> PrivateKey:
    blocks = pem_blocks(read_file(path), path)
    keys = [block for block in blocks if block.is_private_key]
    if not keys:
        swapped = any(block.is_certificate for block in blocks)
        raise CertificateError(
            CertificateProblem.NOT_PEM,
            f"{shown(path)} holds {'a certificate' if swapped else 'PEM'}, but no private key",
            remedy="are certificate and key swapped?" if swapped else "name the private key",
        )
    return _parse_private_key(keys[0], path)


def _parse_private_key(block: PemBlock, path: Path) -> PrivateKey:
    if block.is_encrypted:
        raise CertificateError(
            CertificateProblem.ENCRYPTED,
            f"the private key {shown(path)} is encrypted",
            remedy="store it without a passphrase, mode 0600: openssl pkey -in KEY -out PLAIN",
        )
    try:
        key = load_pem_private_key(block.data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(
            CertificateProblem.NOT_PEM,
            f"{shown(path)} holds no private key that can be read: {_one_line(error)}",
            remedy="write it again, whole, as unencrypted PEM",
        ) from None
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name not in _SERVED_CURVES:
        raise _unsupported(path, f"ECDSA {_CURVES.get(key.curve.name, key.curve.name)}")
    if not isinstance(key, PrivateKey):
        raise _unsupported(path, type(key).__name__.lstrip("_").removesuffix("PrivateKey"))
    return key


def _check_match(
    chain: list[x509.Certificate], key: PrivateKey, chain_path: Path, key_path: Path
) -> None:
    wanted = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    matches = [
        certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        == wanted
        for certificate in chain
    ]
    if matches[0]:
        return
    remedy = "give the key this certificate was issued for, or the certificate of this key"
    if any(matches):
        remedy = "put the server's own certificate first in the file and its issuers after it"
    raise CertificateError(
        CertificateProblem.MISMATCHED,
        f"the key {shown(key_path)} does not belong to the certificate {shown(chain_path)}",
        remedy=remedy,
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    names = extension.value.get_values_for_type(x509.DNSName)
    addresses = extension.value.get_values_for_type(x509.IPAddress)
    return (*names, *map(str, addresses))


def _malformed(path: Path, error: Exception) -> CertificateError:
    return CertificateError(
        CertificateProblem.NOT_PEM,
        f"{shown(path)} holds a certificate that cannot be read: {_one_line(error)}",
        remedy="write it again, whole",
    )


def _unsupported(path: Path, kind: str) -> CertificateError:
    return CertificateError(
        CertificateProblem.UNSUPPORTED,
        f"the private key {shown(path)} is {kind}, which HTTP/3 cannot be served with here",
        remedy="use ECDSA P-256",
    )


def _one_line(error: Exception) -> str:
    """The library's reason, short: it may quote at length and over several lines."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:119] + "…"


def _utc(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
