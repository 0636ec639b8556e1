"""`tenuto certs`: make development certificates, or say what is wrong with a pair."""

from __future__ import annotations

import base64
import json
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from tenuto.cli.paths import NamedPath
from tenuto.tls import (
    DEFAULT_FOLDER,
    RENEW_BEFORE,
    CertificateError,
    DevCertificates,
    DevPair,
    Refusal,
    ServerCertificate,
    check_validity,
    hash_refusals,
    load_certificate,
    read_certificate,
)
from tenuto.tls.problems import shown

__all__ = ["certs", "check_report", "pair_report"]

_HELP = """Make certificates for development, or check a pair of your own.

Without options it makes a private CA and a certificate for localhost, 127.0.0.1 and ::1
in certs/dev/, or keeps what is there and still good. `tenuto serve` does the same by
itself, and renews the certificate while it runs.

\b
  ca.pem     trust this one; the same for a year; it can vouch for
             no host names but those listed (addresses are not limited)
  cert.pem   what the server shows: ECDSA P-256, 13 days, as browsers demand for
             WebTransport's serverCertificateHashes
  key.pem    its key (mode 0600)

A next certificate is prepared beside it, so that a page given both hashes goes on
working after a renewal. Files that this command did not make are never overwritten.
To begin anew, delete the folder.

\b
Examples:
  tenuto certs
  tenuto certs --name voice.test --name 192.168.1.20
  tenuto certs --check fullchain.pem privkey.pem

Exit status: 0, or 2 if the pair cannot be made or, with --check, cannot be served."""


@click.command(help=_HELP, short_help="Make development certificates, or check a pair.")
@click.option(
    "--dir",
    "folder",
    type=NamedPath(),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Folder of the development certificates; made if it is missing.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another host name or address to certify; may be repeated. Names once given stay. "
    "A host name that the CA does not permit yet makes a new CA, to be trusted anew.",
)
@click.option(
    "--check",
    "pair",
    nargs=2,
    type=NamedPath(),
    metavar="CERT KEY",
    help="Make nothing: say whether this pair can be served (match, dates, kind of key) and "
    "whether browsers would take it by its hash.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def certs(
    folder: Path, names: tuple[str, ...], pair: tuple[Path, Path] | None, as_json: bool
) -> None:
    now = datetime.now(UTC)
    if pair is None:
        dev = DevCertificates(folder, names)
        made = dev.ensure(now)
        if as_json:
            click.echo(json.dumps(pair_report(dev, made, now)))
        else:
            click.echo(_describe_pair(made, now))
        return
    if names:
        raise click.UsageError("--check makes nothing, so --name has no meaning beside it")
    _check(*pair, now=now, as_json=as_json)


def _check(chain_path: Path, key_path: Path, *, now: datetime, as_json: bool) -> None:
    """Print what there is to see, then raise what keeps a server from using the pair."""
    try:
        certificate = read_certificate(chain_path, key_path)
    except CertificateError as error:
        if as_json:
            click.echo(json.dumps(_verdict(error)))
        raise
    problem = _problem(certificate, now)
    if as_json:
        click.echo(json.dumps(check_report(certificate, now)))
    else:
        click.echo(_describe_check(certificate, now))
    if problem is not None:
        raise problem


def pair_report(dev: DevCertificates, pair: DevPair, now: datetime) -> dict[str, object]:
    """What `--json` prints of development certificates."""
    return {
        **_facts(pair.current, now),
        "ca": shown(dev.ca_path),
        "next_sha256": _base64(pair.next_pair.sha256),
        "next_sha256_hex": pair.next_pair.sha256.hex(),
        "renewed": pair.renewed,
        "new_ca": pair.new_ca,
    }


def check_report(certificate: ServerCertificate, now: datetime) -> dict[str, object]:
    """What `--check --json` prints: `problem` is None if the pair can be served."""
    return {
        **_facts(certificate, now),
        **_verdict(_problem(certificate, now)),
        "hash_refusals": [
            {"reason": refusal.reason, "remedy": refusal.remedy}
            for refusal in hash_refusals(certificate, now)
        ],
    }


def _problem(certificate: ServerCertificate, now: datetime) -> CertificateError | None:
    try:
        check_validity(certificate, now)
        load_certificate(certificate.chain_path, certificate.key_path, now)
    except CertificateError as error:
        return error
    return None


def _verdict(problem: CertificateError | None) -> dict[str, object]:
    if problem is None:
        return {"problem": None, "message": None}
    return {"problem": problem.problem.value, "message": str(problem)}


def _facts(certificate: ServerCertificate, now: datetime) -> dict[str, object]:
    return {
        "certificate": shown(certificate.chain_path),
        "key": shown(certificate.key_path),
        "key_type": certificate.key_type,
        "names": list(certificate.names),
        "not_before": certificate.not_before.isoformat(),
        "not_after": certificate.not_after.isoformat(),
        "days_left": round(_days(certificate.remaining(now)), 2),
        "sha256": _base64(certificate.sha256),
        "sha256_hex": certificate.sha256.hex(),
    }


def _describe_check(certificate: ServerCertificate, now: datetime) -> str:
    refusals = hash_refusals(certificate, now)
    lines = _table(certificate, now)
    if _problem(certificate, now) is None:
        lines += ["Can be served over QUIC and TCP."]
    if refusals:
        lines += ["Browsers refuse it for WebTransport's serverCertificateHashes:"]
        lines += [f"  - {_sentence(refusal)}" for refusal in refusals]
    else:
        lines += ["Browsers accept it for WebTransport's serverCertificateHashes."]
    return "\n".join(lines)


def _describe_pair(pair: DevPair, now: datetime) -> str:
    headline = "Development certificate, still good:"
    if pair.new_ca:
        headline = "Made a development certificate and a new CA:"
    elif pair.renewed:
        headline = "Renewed the development certificate; its CA is the same:"
    ca = shlex.quote(shown(pair.ca.chain_path))
    return "\n".join(
        [
            headline,
            *_table(pair.current, now),
            f"  next      {_base64(pair.next_pair.sha256)}",
            f"  CA        {shown(pair.ca.chain_path)} (until {pair.ca.not_after:%Y-%m-%d})",
            "",
            f"It is renewed by itself when less than {RENEW_BEFORE.days} days are left.",
            "",
            "Use it with curl or another client, trusting the CA for one command:",
            f"  curl --cacert {ca} https://localhost:4433/healthz",
            "Trust it on this machine (more in certs/README.md):",
            f"  {_trust_command(ca)}",
            "Or, in a browser's WebTransport, trust nothing and name the hashes:",
            *_webtransport_lines(pair),
        ]
    )


def _table(certificate: ServerCertificate, now: datetime) -> list[str]:
    begin, end = certificate.not_before, certificate.not_after
    left = _days(certificate.remaining(now))
    return [
        f"  cert      {shown(certificate.chain_path)}",
        f"  key       {shown(certificate.key_path)} ({certificate.key_type})",
        f"  names     {', '.join(certificate.names) or 'none'}",
        f"  valid     {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({left:.1f} days left)",
        f"  SHA-256   {_base64(certificate.sha256)}",
        f"            {certificate.sha256.hex()}",
    ]


def _webtransport_lines(pair: DevPair) -> list[str]:
    hashes = ", ".join(f'"{_base64(p.sha256)}"' for p in (pair.current, pair.next_pair))
    return [
        f"  const hashes = [{hashes}];",
        "  new WebTransport(url, {serverCertificateHashes: hashes.map(h => ({",
        '    algorithm: "sha-256", value: Uint8Array.from(atob(h), c => c.charCodeAt(0))}))});',
    ]


def _trust_command(ca: str) -> str:
    commands = {
        "darwin": f"security add-trusted-cert -k ~/Library/Keychains/login.keychain-db {ca}",
        "win32": f"certutil -user -addstore Root {ca}",
    }
    linux = (
        f"sudo install -m 644 {ca} /usr/local/share/ca-certificates/tenuto-dev.crt"
        " && sudo update-ca-certificates"
    )
    return commands.get(sys.platform, linux)


def _sentence(refusal: Refusal) -> str:
    return f"{refusal}."


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode("ascii")


def _days(time: timedelta) -> float:
    return time / timedelta(days=1)
