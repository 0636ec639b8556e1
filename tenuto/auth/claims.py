"""What a token says: which session, what may be done, from when until when."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum

from tenuto.auth.refusal import Reason, TokenError

__all__ = ["Claims", "Scope"]

_REMEDY = "have a new one made, such as by `tenuto token`"


class Scope(Enum):
    """What a token may allow; `value` is the word in its `scope`."""

    LISTEN = "listen"
    CONTROL = "control"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class Claims:
    """Times in seconds since 1970. No `session` means any."""

    scopes: frozenset[Scope]
    expires: float
    session: str | None = None
    not_before: float | None = None

    def to_json(self) -> bytes:
        """The payload of a token (RFC 7519)."""
        claims: dict[str, object] = {
            "scope": " ".join(scope.value for scope in Scope if scope in self.scopes),
            "exp": math.ceil(self.expires),
        }
        if self.session is not None:
            claims["sid"] = self.session
        if self.not_before is not None:
            claims["nbf"] = math.floor(self.not_before)
        return json.dumps(claims).encode()

    @classmethod
    def from_json(cls, payload: bytes) -> Claims:
        """Raises `TokenError` MALFORMED. Words in `scope` that mean nothing here are passed by."""
        try:
            claims = json.loads(payload)
        except (ValueError, RecursionError):
            claims = None
        if not isinstance(claims, dict):
            raise _malformed("its claims are no JSON object")
        expires = _time(claims, "exp")
        if expires is None:
            raise _malformed("it has no exp, so it would be valid for ever")
        session = claims.get("sid")
        if session is not None and not isinstance(session, str):
            raise _malformed("its sid is no string")
        scope = claims.get("scope", "")
        if not isinstance(scope, str):
            raise _malformed("its scope is no string of words")
        words = scope.split()
        return cls(
            frozenset(each for each in Scope if each.value in words),
            expires,
            session,
            _time(claims, "nbf"),
        )


def _time(claims: dict[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # A boolean is a number to Python, and a number of hundreds of digits no float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise _malformed(f"its {name} is no time in seconds")
    return float(value)


def _malformed(why: str) -> TokenError:
    return TokenError(Reason.MALFORMED, f"the token cannot be used: {why}", remedy=_REMEDY)
