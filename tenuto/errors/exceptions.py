"""Exceptions, by whose mistake they report."""

from __future__ import annotations

from tenuto.errors.codes import ErrorCode

__all__ = [
    "OperatorError",
    "RemoteProtocolError",
    "RequestError",
    "SourceError",
    "TenutoError",
]


class TenutoError(Exception):
    """A mistake that somebody can answer.

    `message` names the offending thing, `remedy` says what to do about it, and `detail`
    holds facts a machine may act on (such as the first sequence still available).
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        remedy: str = "",
        detail: dict[str, int | float | str] | None = None,
    ) -> None:
        super().__init__(f"{message}. {remedy}" if remedy else message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.detail = detail or {}


class RequestError(TenutoError):
    """The client asked for something that cannot be given: an HTTP answer, no log line."""


class RemoteProtocolError(TenutoError):
    """The peer's bytes break the wire format (docs/wire-format.md)."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BAD_RECORD, message)


class SourceError(TenutoError):
    """The engine behind a session failed; its listeners are told and may resume."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(ErrorCode.SOURCE_FAILED, message, remedy=remedy)


class OperatorError(TenutoError):
    """Whoever runs the command must change something: one line and exit status 2."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(ErrorCode.NOT_CONFIGURED, message, remedy=remedy)
