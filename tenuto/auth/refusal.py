"""Why a token does not do, each reason told apart (RFC 6750 section 3.1)."""

from __future__ import annotations

from enum import Enum

from tenuto.errors import ErrorCode, RequestError

__all__ = ["Reason", "TokenError"]


class Reason(Enum):
    MISSING = "missing"
    TWICE = "twice"
    MALFORMED = "malformed"
    ALGORITHM = "algorithm"
    WRONG_KEY = "wrong-key"
    EXPIRED = "expired"
    NOT_YET = "not-yet-valid"
    OTHER_SESSION = "other-session"
    SCOPE = "scope"


_CODES = {
    Reason.TWICE: ErrorCode.BAD_REQUEST,
    Reason.EXPIRED: ErrorCode.TOKEN_EXPIRED,
    Reason.OTHER_SESSION: ErrorCode.FORBIDDEN,
    Reason.SCOPE: ErrorCode.FORBIDDEN,
}

_RFC_6750 = {
    Reason.TWICE: "invalid_request",
    Reason.OTHER_SESSION: "insufficient_scope",
    Reason.SCOPE: "insufficient_scope",
}


class TokenError(RequestError):
    """A request that is not authorised; `reason` says why.

    `message` never holds a part of the token.
    """

    def __init__(
        self, reason: Reason, message: str, *, remedy: str, scope: str = "", **detail: float
    ) -> None:
        facts: dict[str, int | float | str] = {"reason": reason.value, **detail}
        if scope:
            facts["scope"] = scope
        code = _CODES.get(reason, ErrorCode.UNAUTHORIZED)
        super().__init__(code, message, remedy=remedy, detail=facts)
        self.reason = reason
        self._scope = scope

    @property
    def challenge(self) -> str:
        """The value of `WWW-Authenticate`.

        Who sent no token is told no error: it may not have known (RFC 6750 section 3.1).
        """
        fields = ['realm="tenuto"']
        if self.reason is not Reason.MISSING:
            fields.append(f'error="{_RFC_6750.get(self.reason, "invalid_token")}"')
            fields.append(f'error_description="{_plain(self.message)}"')
        if self._scope:
            fields.append(f'scope="{self._scope}"')
        return f"Bearer {', '.join(fields)}"


def _plain(text: str) -> str:
    """What RFC 6750 section 3 allows in a description: ASCII without quotes and backslashes."""
    return "".join(
        each if " " <= each <= "~" and each not in '"\\' else "'" if each in "\"'" else "?"
        for each in text
    )
