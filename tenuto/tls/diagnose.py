"""Why a certificate is refused, in words: browsers themselves only say "handshake failed"."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from tenuto.tls.certificate import ServerCertificate
from tenuto.tls.load import check_validity
from tenuto.tls.problems import CertificateError

__all__ = ["Refusal", "explain_verification", "hash_refusals"]

_TWO_WEEKS = timedelta(days=14)

_FRESH = "make a suitable one with `tenuto certs`"

# OpenSSL's X509_V_ERR_* numbers, which the ssl module does not name.
_NOT_YET_VALID, _EXPIRED = 9, 10
_SELF_SIGNED = (18, 19)
_UNKNOWN_ISSUER = (2, 20, 21)
_WRONG_NAME = (62, 64)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason, and what to do about it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


def hash_refusals(certificate: ServerCertificate, now: datetime) -> tuple[Refusal, ...]:
    """Why a browser would not accept it by `serverCertificateHashes`; empty if it would.

    The conditions are those of the W3C's WebTransport, "verify a certificate hash"; names
    and issuer do not matter there.
    """
    return tuple(
        refusal
        for refusal in (
            _refused_key(certificate),
            _refused_version(certificate),
            _refused_duration(certificate),
            _refused_now(certificate, now),
        )
        if refusal is not None
    )


def explain_verification(error: ssl.SSLCertVerificationError, now: datetime) -> Refusal:
    """Why a client of ours did not accept a server's certificate."""
    code, clock = error.verify_code, f"{now:%Y-%m-%d %H:%M:%S %Z}".strip()
    if code == _NOT_YET_VALID:
        return Refusal(
            f"the server's certificate is not valid yet by this machine's clock ({clock})",
            "if that time is wrong, set the clock; if it is right, the server's is ahead",
        )
    if code == _EXPIRED:
        return Refusal(
            f"the server's certificate has expired by this machine's clock ({clock})",
            "if that time is right, the server's certificate must be renewed",
        )
    if code in _WRONG_NAME:
        return Refusal(
            f"the server's certificate is for other names ({error.verify_message})",
            "connect by a name it has, or have the name added",
        )
    if code in _SELF_SIGNED or code in _UNKNOWN_ISSUER:
        return Refusal(
            "the server's certificate was issued by nobody this client trusts",
            "give the CA's certificate, such as certs/dev/ca.pem of a development server",
        )
    return Refusal(
        f"the server's certificate cannot be verified ({error.verify_message})",
        "look at it with `tenuto certs --check` on the server",
    )


def _refused_key(certificate: ServerCertificate) -> Refusal | None:
    if certificate.key_type == "ECDSA P-256":
        return None
    if certificate.key_type.startswith("RSA"):
        return Refusal(f"its key is {certificate.key_type}, and RSA is not allowed", _FRESH)
    return Refusal(
        f"its key is {certificate.key_type}, and ECDSA P-256 is all that every browser takes",
        _FRESH,
    )


def _refused_version(certificate: ServerCertificate) -> Refusal | None:
    if certificate.leaf.version is x509.Version.v3:
        return None
    return Refusal("it is no X.509 version 3 certificate", _FRESH)


def _refused_duration(certificate: ServerCertificate) -> Refusal | None:
    duration = certificate.not_after - certificate.not_before
    # Both ends belong to the validity (RFC 5280, section 4.1.2.5), so 14 days are too long.
    if duration < _TWO_WEEKS:
        return None
    return Refusal(
        f"it is valid for {duration / timedelta(days=1):.4g} days in all, and 14 are too many",
        "issue it for 13 days and renew it often, as `tenuto certs` does, or have it signed by "
        "an authority that browsers trust and do without hashes",
    )


def _refused_now(certificate: ServerCertificate, now: datetime) -> Refusal | None:
    try:
        check_validity(certificate, now)
    except CertificateError as error:
        return Refusal(error.message, error.remedy)
    return None
