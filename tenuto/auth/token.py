"""Tokens: JSON Web Tokens (RFC 7519), signed with EdDSA or HS256."""

from __future__ import annotations

from jwt import PyJWS
from jwt.exceptions import InvalidSignatureError, PyJWTError

from tenuto.auth.claims import Claims
from tenuto.auth.keys import Key, KeyRing
from tenuto.auth.refusal import Reason, TokenError

__all__ = ["MAX_TOKEN_SIZE", "issue", "look_into", "verify"]

MAX_TOKEN_SIZE = 4096
"""Characters; ours have some 250."""

_JWS = PyJWS(algorithms=["EdDSA", "HS256"])
_NEW = "have a new one made, such as by `tenuto token`"


def issue(key: Key, claims: Claims) -> str:
    """A token; `ValueError` for a key that only verifies."""
    if key.signs_with is None:
        raise ValueError("a public key signs nothing")
    return _JWS.encode(
        claims.to_json(), key.signs_with, algorithm=key.algorithm, headers={"kid": key.id}
    )


def verify(token: str, keys: KeyRing, now: float) -> Claims:
    """The claims of a token that is valid at `now`, in seconds since 1970; else `TokenError`.

    Only the signature is the library's: it has a clock of its own, which is not asked.
    """
    algorithm, id, _ = look_into(token)
    candidates = keys.candidates(algorithm, id)
    if not candidates:
        raise TokenError(
            Reason.ALGORITHM,
            f"the token is signed with {_shown(algorithm)}, for which there is no key here",
            remedy=f"sign it with {' or '.join(keys.algorithms())}",
        )
    payload = next((found for key in candidates if (found := _payload(token, key))), None)
    if payload is None:
        raise TokenError(
            Reason.WRONG_KEY,
            "the token is not signed by a key of this server",
            remedy="have it made with the key that the server was given by --token-key",
        )
    claims = Claims.from_json(payload)
    _check_time(claims, now)
    return claims


def look_into(token: str) -> tuple[str, object, bytes]:
    """Algorithm, key id and claims as JSON, of which nothing is proved."""
    try:
        if not token.isascii() or len(token) > MAX_TOKEN_SIZE:
            raise ValueError
        parts = _JWS.decode_complete(token, options={"verify_signature": False})
    except (PyJWTError, ValueError, RecursionError):
        raise TokenError(
            Reason.MALFORMED,
            "the token is no JSON Web Token of three parts, or damaged",
            remedy="send it whole, as `tenuto token` printed it",
        ) from None
    header = parts["header"]
    return str(header.get("alg", "none")), header.get("kid"), parts["payload"]


def _payload(token: str, key: Key) -> bytes | None:
    """What this key has signed, if it has."""
    try:
        payload: bytes = _JWS.decode(token, key.verifies_with, algorithms=[key.algorithm])
    except InvalidSignatureError:
        return None
    return payload


def _check_time(claims: Claims, now: float) -> None:
    if claims.not_before is not None and now < claims.not_before:
        ahead = claims.not_before - now
        raise TokenError(
            Reason.NOT_YET,
            f"the token is valid only in {_duration(ahead)}",
            remedy="wait, or set the clock of this machine or that of its maker",
            valid_in=round(ahead, 3),
        )
    if now >= claims.expires:
        ago = now - claims.expires
        raise TokenError(
            Reason.EXPIRED,
            f"the token expired {_duration(ago)} ago",
            remedy=_NEW,
            expired_ago=round(ago, 3),
        )


def _shown(algorithm: str) -> str:
    return "no algorithm" if algorithm.lower() == "none" else algorithm[:20]


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
