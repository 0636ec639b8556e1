"""What to do when no transport got through, judged from what each one met."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.client.errors import ConnectError, Failure, FailureKind
from tenuto.client.target import Target

__all__ = ["connect_error"]

_NAMES = {"quic": "QUIC", "tcp": "TCP"}


def connect_error(target: Target, failures: Sequence[Failure]) -> ConnectError:
    """One error that names every transport tried."""
    if failures[0].kind is FailureKind.NAME:
        message = failures[0].reason
    else:
        tried = ", ".join(f"{_NAMES[f.transport]}: {f.reason}" for f in failures)
        message = f"cannot reach {target.origin} ({tried})"
    return ConnectError(message, remedy=_remedy(target, failures), failures=tuple(failures))


def _remedy(target: Target, failures: Sequence[Failure]) -> str:
    kinds = {failure.kind for failure in failures}
    transports = {failure.transport for failure in failures}
    if FailureKind.NAME in kinds:
        return "check the spelling of the host and that this machine has a network"
    if FailureKind.UNTRUSTED in kinds:
        return (
            "if the server is yours, trust its CA: --ca certs/dev/ca.pem on the command line, "
            "Trust(cafile=...) in Python"
        )
    if kinds == {FailureKind.REFUSED}:
        if transports == {"quic"}:
            return f"is the server running, with QUIC on UDP port {target.port}?"
        return f"is the server running, and on port {target.port}?"
    if transports == {"quic"}:
        return f"is the server running, or UDP port {target.port} blocked? try --transport tcp"
    if FailureKind.TIMEOUT in kinds:
        return f"is the server running, or port {target.port} blocked on the way?"
    return "is it a Tenuto server?"
