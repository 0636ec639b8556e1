"""PEM files as operators really have them: CRLF, a BOM, explanatory text, several blocks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tenuto.tls.problems import CertificateError, CertificateProblem, shown

__all__ = ["MAX_PEM_SIZE", "PemBlock", "pem_blocks", "read_file"]

MAX_PEM_SIZE = 256 * 1024
"""A chain of ten RSA-4096 certificates has 20 KiB; whatever is larger is another file."""

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One block with its line endings made plain; `label` is as in `-----BEGIN label-----`."""

    label: str
    data: bytes

    @property
    def is_certificate(self) -> bool:
        return self.label in ("CERTIFICATE", "X509 CERTIFICATE")

    @property
    def is_private_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        # RFC 5958 has a label of its own; RFC 1421 (old OpenSSL files) has a header line.
        return self.label.startswith("ENCRYPTED") or b"Proc-Type: 4,ENCRYPTED" in self.data


def read_file(path: Path) -> bytes:
    """The whole of a small regular file; a `CertificateError` for anything else."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unreadable(path, "it is not a regular file")
            data = file.read(MAX_PEM_SIZE + 1)
    except FileNotFoundError:
        raise CertificateError(
            CertificateProblem.MISSING,
            f"there is no file {shown(path)}",
            remedy="check the path",
        ) from None
    except PermissionError:
        raise CertificateError(
            CertificateProblem.NOT_PERMITTED,
            f"no permission to read {shown(path)}",
            remedy="let the server's user read it, and nobody else if it is a key",
        ) from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except ValueError:  # a NUL in the path
        raise _unreadable(path, "its name is no path") from None
    if len(data) > MAX_PEM_SIZE:
        raise _unreadable(path, f"it has more than {MAX_PEM_SIZE} bytes, so it is no PEM file")
    return data


def pem_blocks(data: bytes, path: Path) -> list[PemBlock]:
    """All blocks in order; text around them is allowed (RFC 7468, section 2).

    Raises `CertificateError` when there is none, or when one has no end, as in a file that
    is still being written. `path` is only for the message.
    """
    blocks: list[PemBlock] = []
    label: bytes | None = None
    lines: list[bytes] = []
    for line in map(bytes.strip, data.removeprefix(b"\xef\xbb\xbf").splitlines()):
        if line.startswith(_BEGIN) and line.endswith(_DASHES):
            label, lines = line[len(_BEGIN) : -len(_DASHES)], [line]
        elif label is not None:
            lines.append(line)
            if line == _END + label + _DASHES:
                name = label.decode("ascii", "replace")
                blocks.append(PemBlock(name, b"\n".join(lines) + b"\n"))
                label = None
    if label is not None:
        raise CertificateError(
            CertificateProblem.NOT_PEM,
            f"{shown(path)} ends in the middle of a PEM block",
            remedy="write it again, whole",
        )
    if not blocks:
        raise _not_pem(data, path)
    return blocks


def _open_without_waiting(path: str, flags: int) -> int:
    # Opening a FIFO for reading waits for a writer: a server must not.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _unreadable(path: Path, reason: str) -> CertificateError:
    return CertificateError(
        CertificateProblem.UNREADABLE,
        f"cannot read {shown(path)}: {reason}",
        remedy="name a PEM file",
    )


def _not_pem(data: bytes, path: Path) -> CertificateError:
    if not data.strip():
        return CertificateError(
            CertificateProblem.EMPTY, f"{shown(path)} is empty", remedy="write it again, whole"
        )
    remedy = "it must have lines such as -----BEGIN CERTIFICATE-----"
    if data[:1] == b"\x30":  # an ASN.1 SEQUENCE
        remedy = "it looks like DER or PKCS #12: convert it to PEM with openssl x509 or pkcs12"
    elif data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = "it looks like UTF-16 text: save it as ASCII or UTF-8"
    return CertificateError(CertificateProblem.NOT_PEM, f"{shown(path)} is not PEM", remedy=remedy)
