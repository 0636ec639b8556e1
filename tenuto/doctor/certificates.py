"""The server's certificate as evidence, trusted or not."""

from __future__ import annotations

from contextlib import suppress
from time import time

from cryptography import x509
from cryptography.x509.oid import NameOID

from tenuto.client.errors import FailureKind
from tenuto.doctor.diagnosis.evidence import CertificateSeen, Handshake
from tenuto.doctor.exchange import Look

__all__ = ["certificate_seen", "untrusted"]


def untrusted(look: Look) -> bool:
    return look.handshake.kind == FailureKind.UNTRUSTED.value


def certificate_seen(look: Look, refused: Handshake | None) -> CertificateSeen | None:
    """`refused` is the attempt that did not trust it; None where there is none to see."""
    if look.certificate is None:
        return None
    try:
        certificate = x509.load_der_x509_certificate(look.certificate)
    except ValueError:
        return None
    return CertificateSeen(
        not_before=certificate.not_valid_before_utc.timestamp(),
        not_after=certificate.not_valid_after_utc.timestamp(),
        issuer=_issuer(certificate),
        now=time(),
        trusted=refused is None,
        refusal=refused.failure if refused else "",
        remedy=refused.remedy if refused else "",
        server_date=look.date,
    )


def _issuer(certificate: x509.Certificate) -> str:
    for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
        with suppress(IndexError, ValueError):
            name = str(certificate.issuer.get_attributes_for_oid(oid)[0].value)
            return name[:80] if name.isprintable() else ascii(name)[1:-1][:80]
    return "an issuer without a name"
