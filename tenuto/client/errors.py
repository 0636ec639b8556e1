"""How a stream can fail on the listener's side."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tenuto.client.exchange import Transport
from tenuto.errors import ErrorCode, TenutoError

__all__ = ["ConnectError", "Failure", "FailureKind", "LegError", "StreamCut"]


class FailureKind(StrEnum):
    """Why a leg did not connect or did not last; fit for a metric label."""

    NAME = "name"
    """The host name has no address."""
    REFUSED = "refused"
    """Nothing listens there: ICMP port unreachable or a TCP reset."""
    TIMEOUT = "timeout"
    """No answer within the deadline, or none for the idle time-out."""
    UNREACHABLE = "unreachable"
    """The system knows no way to the address."""
    UNTRUSTED = "untrusted"
    """Something answered, but its certificate is not trusted here."""
    PROTOCOL = "protocol"
    """Something answered that does not speak HTTP/3 or HTTP/1.1 over TLS 1.3."""
    CLOSED = "closed"
    """The peer closed or reset what was open."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One transport's attempt and why it failed."""

    transport: Transport
    kind: FailureKind
    reason: str


class LegError(Exception):
    """A leg cannot go on; `reason` is a clause that fits behind "quic: ".

    `code` is the server's, where it reset the stream with one of ours; `remedy` is what to do
    about a certificate that is not trusted.
    """

    def __init__(
        self,
        kind: FailureKind,
        reason: str,
        code: ErrorCode | None = None,
        *,
        remedy: str = "",
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.code = code
        self.remedy = remedy


class ConnectError(TenutoError):
    """No transport reached the server; `failures` says what each one met."""

    def __init__(self, message: str, *, remedy: str, failures: tuple[Failure, ...]) -> None:
        # The code of an error that arises here and never travels.
        super().__init__(ErrorCode.INTERNAL, message, remedy=remedy)
        self.failures = failures


class StreamCut(TenutoError):  # noqa: N818 - what happened, and no mistake of ours
    """The stream stopped without END: what came is not the whole.

    `next_sequence` is the first frame still missing; together with `epoch` and `session`
    it is what a resume asks for. `code` is the server's, where a NOTICE named one.
    """

    def __init__(
        self,
        reason: str,
        *,
        session: str | None,
        epoch: int,
        next_sequence: int,
        code: ErrorCode = ErrorCode.INTERNAL,
        remedy: str = "",
    ) -> None:
        super().__init__(
            code,
            f"the stream was cut before frame {next_sequence}: {reason}",
            remedy=remedy,
            detail={"next": next_sequence, "epoch": epoch},
        )
        self.reason = reason
        self.session = session
        self.epoch = epoch
        self.next_sequence = next_sequence
