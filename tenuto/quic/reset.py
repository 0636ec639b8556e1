"""Stateless resets (RFC 9000 section 10.3): what a server says that has lost its memory."""

from __future__ import annotations

import hashlib
import hmac
import os

__all__ = ["LEAST_ANSWERED", "RESET_SIZE", "TOKEN_SIZE", "ResetKey", "names_token"]

TOKEN_SIZE = 16

RESET_SIZE = 43
"""Bytes of a reset that answers a packet larger than that: what looks like any short packet."""

_LEAST_RESET = 21
"""A header byte, 4 unpredictable bytes and the token: no smaller packet can be a reset."""

LEAST_ANSWERED = _LEAST_RESET + 1
"""A reset is smaller than what it answers, or two servers could go on answering each other."""

_SHORT_HEADER = 0x40
_UNPREDICTABLE = 0x3F


class ResetKey:
    """Tokens by connection ID, the same in every process that has the key.

    So a server that was killed and started again can still tell its former clients that
    their connections are gone.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < TOKEN_SIZE:
            raise ValueError(f"a key of {len(key)} bytes")
        self._key = key

    def token(self, connection_id: bytes) -> bytes:
        """What a peer is told about this ID while the connection lives."""
        return hmac.digest(self._key, connection_id, hashlib.sha256)[:TOKEN_SIZE]

    def answer(self, packet: bytes, id_length: int) -> bytes | None:
        """A reset for the sender of this short-header packet; None where it is too small."""
        size = min(len(packet) - 1, RESET_SIZE)
        if size < _LEAST_RESET:
            return None
        noise = os.urandom(size - TOKEN_SIZE)
        first = _SHORT_HEADER | noise[0] & _UNPREDICTABLE
        return bytes((first,)) + noise[1:] + self.token(packet[1 : 1 + id_length])


def names_token(datagram: bytes, token: bytes) -> bool:
    """Does this datagram end in that token? The time it takes says nothing of the token."""
    return len(datagram) >= _LEAST_RESET and hmac.compare_digest(datagram[-TOKEN_SIZE:], token)
