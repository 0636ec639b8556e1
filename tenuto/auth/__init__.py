"""Who may listen, control and create: tokens, their keys, and the one function that decides."""

from tenuto.auth.claims import Claims, Scope
from tenuto.auth.decision import authorise
from tenuto.auth.keys import MAX_KEYS, MIN_SECRET_SIZE, Key, KeyRing, read_key
from tenuto.auth.refusal import Reason, TokenError
from tenuto.auth.token import MAX_TOKEN_SIZE, issue, look_into, verify

__all__ = [
    "MAX_KEYS",
    "MAX_TOKEN_SIZE",
    "MIN_SECRET_SIZE",
    "Claims",
    "Key",
    "KeyRing",
    "Reason",
    "Scope",
    "TokenError",
    "authorise",
    "issue",
    "look_into",
    "read_key",
    "verify",
]
