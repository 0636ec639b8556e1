"""The closed set of error codes, with their HTTP status and HTTP/3 stream code."""

from __future__ import annotations

from enum import Enum

__all__ = ["H3_ERROR_BASE", "ErrorCode"]

# Application error codes of RESET_STREAM: "TEN" and one byte, outside the ranges that
# RFC 9114 section 8.1 and its GREASE pattern (0x1f * N + 0x21) reserve.
H3_ERROR_BASE = 0x54454E00


class ErrorCode(Enum):
    """An error as clients see it: `value` is its name in JSON, stable for ever.

    `status` is the HTTP status before the first body byte; `number` is added to
    `H3_ERROR_BASE` for the RESET_STREAM that follows a NOTICE after it.
    """

    _value_: str
    status: int
    number: int

    def __new__(cls, name: str, status: int, number: int) -> ErrorCode:
        member = object.__new__(cls)
        member._value_ = name
        member.status = status
        member.number = number
        return member

    BAD_REQUEST = ("bad-request", 400, 0x01)
    BAD_TEXT = ("bad-text", 400, 0x02)
    UNKNOWN_VOICE = ("unknown-voice", 400, 0x03)
    UNKNOWN_ROUTE = ("unknown-route", 404, 0x19)  # 0x04 is one of GREASE's
    UNKNOWN_SESSION = ("unknown-session", 404, 0x05)
    UNKNOWN_FILE = ("unknown-file", 404, 0x06)
    METHOD_NOT_ALLOWED = ("method-not-allowed", 405, 0x07)
    NOT_ACCEPTABLE = ("not-acceptable", 406, 0x08)
    EXPIRED_SESSION = ("expired-session", 410, 0x09)
    TOO_OLD = ("too-old", 410, 0x0A)
    TOO_LARGE = ("too-large", 413, 0x0B)
    UNSUPPORTED_AUDIO = ("unsupported-audio", 415, 0x0C)
    FAR_AHEAD = ("far-ahead", 416, 0x0D)
    OLD_HTTP = ("old-http", 426, 0x0E)
    HEADERS_TOO_LARGE = ("headers-too-large", 431, 0x0F)
    INTERNAL = ("internal", 500, 0x10)
    SOURCE_FAILED = ("source-failed", 502, 0x11)
    NO_VOICE = ("no-voice", 503, 0x12)
    AT_CAPACITY = ("at-capacity", 503, 0x13)
    DRAINING = ("draining", 503, 0x14)
    TOO_SLOW = ("too-slow", 503, 0x15)
    SUPERSEDED = ("superseded", 409, 0x16)
    BAD_RECORD = ("bad-record", 400, 0x17)
    NOT_CONFIGURED = ("not-configured", 500, 0x18)
    HTTP_VERSION = ("http-version", 505, 0x1A)
    REQUEST_TIMEOUT = ("request-timeout", 408, 0x1B)
    FOREIGN_ORIGIN = ("foreign-origin", 403, 0x1C)
    MISDIRECTED = ("misdirected", 421, 0x1D)
    SOURCE_ENDED = ("source-ended", 410, 0x20)
    OLD_EPOCH = ("old-epoch", 410, 0x21)
    WRONG_NODE = ("wrong-node", 421, 0x22)
    UNAUTHORIZED = ("unauthorized", 401, 0x24)  # 0x23 is one of GREASE's
    TOKEN_EXPIRED = ("token-expired", 401, 0x25)
    FORBIDDEN = ("forbidden", 403, 0x26)
    KEY_REUSED = ("key-reused", 422, 0x27)

    @property
    def h3_error(self) -> int:
        """Application error code for RESET_STREAM and STOP_SENDING (RFC 9000 20.2)."""
        return H3_ERROR_BASE + self.number
