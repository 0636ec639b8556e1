"""The one function that says whether a request may: for both doors, attach and resume alike."""

from __future__ import annotations

from tenuto.auth.claims import Claims, Scope
from tenuto.auth.keys import KeyRing
from tenuto.auth.refusal import Reason, TokenError
from tenuto.auth.token import verify

__all__ = ["authorise"]

_DO = {
    Scope.LISTEN: "listen",
    Scope.CONTROL: "control sessions",
    Scope.CREATE: "start sessions",
}


def authorise(
    keys: KeyRing, token: str | None, scope: Scope, session: str | None, now: float
) -> Claims:
    """What the token says, if it allows `scope` on `session`; else `TokenError`.

    `session` is None where the request is about none: then a token that is bound to one does
    not do. `now` is in seconds since 1970.
    """
    if token is None:
        raise TokenError(
            Reason.MISSING,
            "this server wants a token",
            remedy="send `Authorization: Bearer TOKEN`, or `?token=` where headers cannot be set",
            scope=scope.value,
        )
    claims = verify(token, keys, now)
    if scope not in claims.scopes:
        raise TokenError(
            Reason.SCOPE,
            f"the token does not allow to {_DO[scope]}",
            remedy=f"have one made whose scope holds {scope.value}",
            scope=scope.value,
        )
    if claims.session is not None and claims.session != session:
        raise TokenError(
            Reason.OTHER_SESSION,
            "the token is for one session, and this is not it",
            remedy="use it with the session that it was made for, or one that has no sid",
            scope=scope.value,
        )
    return claims
