"""A sticky share of clients: raising it never takes QUIC away from anyone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import sha256

from tenuto.errors import OperatorError

__all__ = ["GREYING_FOR", "OFFERED_FOR", "Decision", "QuicShare", "alt_svc", "decide"]

OFFERED_FOR = 86400
"""Seconds a client may remember the offer (RFC 7838's `ma`)."""

GREYING_FOR = 300
"""The same while only a part of the clients is offered QUIC, so that a step back is quick."""

_BUCKETS = 1 << 32


@dataclass(frozen=True, slots=True)
class QuicShare:
    """How many clients are offered QUIC: `percent` of 0 to 100; 0 is off."""

    percent: float = 100.0
    salt: str = "tenuto"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.percent) and 0 <= self.percent <= 100):
            raise OperatorError(
                f"quic = {self.percent}", remedy='say "off" or a percentage of 0 to 100'
            )

    @classmethod
    def parse(cls, text: str) -> QuicShare:
        """From a setting: `off`, `on`, `25`, `25%`, `0.5`."""
        word = text.strip().lower()
        if word in ("off", "on"):
            return cls(100.0 if word == "on" else 0.0)
        try:
            return cls(float(word.removesuffix("%")))
        except ValueError:
            raise OperatorError(
                f"quic = {text!r}", remedy='say "off", "on" or a percentage of 0 to 100'
            ) from None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether this client is offered QUIC, and for how many seconds it may remember it."""

    quic: bool
    max_age: int


def decide(share: QuicShare, client: str) -> Decision:
    """The answer for a client's stable id; the empty id always sits in the last place.

    The id's bucket is the first four bytes of SHA-256 over salt, NUL and id in UTF-8, as a
    fraction of 2**32; QUIC is offered below the share. So it is the same in every process
    and language, and monotone in the share.
    """
    if client:
        digest = sha256(f"{share.salt}\0{client}".encode("utf-8", "surrogatepass")).digest()
        bucket = int.from_bytes(digest[:4], "big")
    else:
        bucket = _BUCKETS - 1
    offered = bucket < share.percent / 100 * _BUCKETS
    return Decision(offered, OFFERED_FOR if share.percent == 100 else GREYING_FOR)


def alt_svc(decision: Decision, port: int) -> str:
    """The Alt-Svc field value (RFC 7838): an offer of HTTP/3, or the withdrawal of one."""
    return f'h3=":{port}"; ma={decision.max_age}' if decision.quic else "clear"
