"""Certificates: made for development, loaded, kept up to date on both doors, explained."""

from tenuto.tls.certificate import PrivateKey, ServerCertificate
from tenuto.tls.context import ALPN, client_context, install, server_context
from tenuto.tls.devcerts import DEFAULT_FOLDER, RENEW_BEFORE, DevCertificates, DevPair
from tenuto.tls.diagnose import Refusal, explain_verification, hash_refusals
from tenuto.tls.keeper import (
    CertificateEvent,
    CertificateHashes,
    CertificateKeeper,
    CertificateRejected,
    CertificateReplaced,
    RenewalFailed,
)
from tenuto.tls.load import check_validity, load_certificate, read_certificate
from tenuto.tls.problems import CertificateError, CertificateProblem

__all__ = [
    "ALPN",
    "DEFAULT_FOLDER",
    "RENEW_BEFORE",
    "CertificateError",
    "CertificateEvent",
    "CertificateHashes",
    "CertificateKeeper",
    "CertificateProblem",
    "CertificateRejected",
    "CertificateReplaced",
    "DevCertificates",
    "DevPair",
    "PrivateKey",
    "Refusal",
    "RenewalFailed",
    "ServerCertificate",
    "check_validity",
    "client_context",
    "explain_verification",
    "hash_refusals",
    "install",
    "load_certificate",
    "read_certificate",
    "server_context",
]
