"""What can be wrong with a certificate: a closed set, fit for metric labels."""

from __future__ import annotations

from enum import StrEnum
from os import PathLike, fspath

from tenuto.errors import OperatorError

__all__ = ["CertificateError", "CertificateProblem", "shown"]


class CertificateProblem(StrEnum):
    """Why a pair cannot be served, or a development pair cannot be made."""

    MISSING = "missing"
    NOT_PERMITTED = "not-permitted"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    NOT_PEM = "not-pem"
    ENCRYPTED = "encrypted"
    MISMATCHED = "mismatched"
    UNSUPPORTED = "unsupported"
    NOT_YET_VALID = "not-yet-valid"
    EXPIRED = "expired"
    NOT_OURS = "not-ours"
    UNWRITABLE = "unwritable"
    BUSY = "busy"
    BAD_NAME = "bad-name"
    NAMELESS = "nameless"


class CertificateError(OperatorError):
    """An `OperatorError` about a certificate, a key or their folder."""

    def __init__(self, problem: CertificateProblem, message: str, *, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.problem = problem


def shown(path: str | PathLike[str]) -> str:
    """The path for a one-line message: escaped if it holds line breaks or lone surrogates."""
    text = fspath(path)
    return text if text.isprintable() else ascii(text)[1:-1]
