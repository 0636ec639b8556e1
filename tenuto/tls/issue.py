"""Make development certificates: values and `now` in, a certificate and its key out."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tenuto.tls.certificate import PrivateKey
from tenuto.tls.problems import CertificateError, CertificateProblem

__all__ = [
    "BACKDATE",
    "CA_VALIDITY",
    "DEFAULT_NAMES",
    "LEAF_VALIDITY",
    "Issued",
    "covers",
    "general_names",
    "issue_ca",
    "issue_leaf",
]

DEFAULT_NAMES = ("localhost", "127.0.0.1", "::1")

LEAF_VALIDITY = timedelta(days=13)
"""From notBefore to notAfter; browsers refuse `serverCertificateHashes` at two weeks."""

BACKDATE = timedelta(hours=1)
"""A clock this far behind ours still accepts a certificate made just now."""

CA_VALIDITY = timedelta(days=365)

MAX_NAMES = 100

_ORGANIZATION = "Tenuto development"


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: PrivateKey = field(repr=False)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def general_names(names: Iterable[str]) -> tuple[x509.DNSName | x509.IPAddress, ...]:
    """Names for a SAN, each once, in order; a `CertificateError` for what is none.

    Takes host names (Unicode ones become IDNA), one leading wildcard label and addresses.
    """
    unique = tuple(dict.fromkeys(map(_general_name, names)))
    if len(unique) > MAX_NAMES:
        raise _bad_name(f"{len(unique)} names", f"give at most {MAX_NAMES}")
    return unique


def issue_ca(names: Iterable[str], now: datetime) -> Issued:
    """An authority that can vouch for no other host names than those in `names`.

    Whoever finds its key can therefore impersonate these hosts only, even to a browser that
    trusts it (RFC 5280, section 4.2.1.10). Of addresses it can vouch for any: a constraint on
    them would make clients with BoringSSL (gRPC, Envoy) refuse the chain altogether.
    At least one of `names` is a host's.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # A name of its own: verifiers look issuers up by name, and an older CA may be trusted too.
    subject = _name(f"Tenuto development CA {serial % 2**32:08x}")
    constraints = x509.NameConstraints(sorted(_permitted(names), key=repr), None)
    start = _whole_seconds(now) - BACKDATE
    public_key = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(start + CA_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(certificates=True), critical=True)
        .add_extension(constraints, critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_authority(identifier), critical=False)
    )
    return Issued(builder.sign(key, hashes.SHA256()), key)


def issue_leaf(ca: Issued, names: Iterable[str], starts_in_use: datetime) -> Issued:
    """A server's certificate to be used from `starts_in_use` on; valid a little earlier."""
    key = ec.generate_private_key(ec.SECP256R1())
    start = _whole_seconds(starts_in_use) - BACKDATE
    public_key = key.public_key()
    issuer = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name("localhost"))
        .issuer_name(ca.certificate.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + LEAF_VALIDITY)
        .add_extension(x509.SubjectAlternativeName(general_names(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(_authority(issuer.value), critical=False)
    )
    return Issued(builder.sign(ca.key, hashes.SHA256()), key)


def covers(ca: x509.Certificate, names: Iterable[str]) -> bool:
    """Whether its name constraints permit the host names in `names`, and constrain no more.

    One with addresses among them is of an older kind, which BoringSSL refuses.
    """
    try:
        extension = ca.extensions.get_extension_for_class(x509.NameConstraints)
    except x509.ExtensionNotFound:
        return False
    permitted = set(extension.value.permitted_subtrees or ())
    hosts_only = all(isinstance(name, x509.DNSName) for name in permitted)
    return hosts_only and _permitted(names) <= permitted


def _permitted(names: Iterable[str]) -> set[x509.DNSName]:
    return {
        x509.DNSName(name.value.removeprefix("*."))
        for name in general_names(names)
        if isinstance(name, x509.DNSName)
    }


def _general_name(name: str) -> x509.DNSName | x509.IPAddress:
    text = name.strip()
    try:
        address = ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return x509.DNSName(_host_name(text))
    if getattr(address, "scope_id", None):
        raise _bad_name(ascii(name), "leave out the zone, it has no place in a certificate")
    return x509.IPAddress(address)


def _host_name(text: str) -> str:
    wildcard = "*." if text.startswith("*.") else ""
    try:
        host = text.removeprefix(wildcard).removesuffix(".").encode("idna").decode().lower()
    except UnicodeError:
        host = ""
    labels = host.split(".")
    if len(host) > 253 or not all(_is_label(label) for label in labels):
        raise _bad_name(
            ascii(text), "give a host name or an address alone, without scheme and port"
        )
    return wildcard + host


def _is_label(label: str) -> bool:
    return (
        0 < len(label) <= 63
        and label.replace("-", "a").replace("_", "a").isalnum()
        and label[0] != "-"
        and label[-1] != "-"
    )


def _bad_name(what: str, remedy: str) -> CertificateError:
    return CertificateError(
        CertificateProblem.BAD_NAME, f"{what} cannot be put into a certificate", remedy=remedy
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _authority(identifier: x509.SubjectKeyIdentifier) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _key_usage(*, certificates: bool) -> x509.KeyUsage:
    """A CA signs certificates and their revocation; a TLS 1.3 server signs handshakes."""
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _whole_seconds(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(microsecond=0)
