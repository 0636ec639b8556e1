"""What a NAT does to a flow: judged by the port that the server sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from tenuto.doctor.diagnosis.evidence import Seen, Silence

__all__ = ["Binding", "Nat", "judge_nat", "silences_up_to", "translated"]

WAITS = (6.0, 11.0, 21.0, 33.0, 63.0, 125.0, 305.0)
"""Seconds of silence tried, each a little more than what NATs are set to: 5, 10, 20, 30, 60,
120 (RFC 4787's least) and 300 (what it recommends)."""


class Binding(StrEnum):
    NONE = "no-translation"
    KEPT = "kept"
    FORGOTTEN = "forgotten"
    REBINDS = "rebinds"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Nat:
    """`kept` is the longest silence survived, `lost` the shortest that cost the port."""

    binding: Binding
    outside: str = ""
    kept: float = 0.0
    lost: float = 0.0
    within: float = 0.0
    """Rebinds: the port changed within so many seconds of a flow that was never silent."""


def silences_up_to(limit: float) -> tuple[float, ...]:
    """The silences to try, the longest of `limit` seconds at most."""
    known = tuple(wait for wait in WAITS if wait <= limit)
    return known or ((limit,) if limit > 0 else ())


def translated(seen: Seen) -> bool:
    """Whether the server sees another address or port than this machine uses."""
    return (seen.local, seen.local_port) != (seen.address, seen.port)


def _moved(before: Seen, after: Seen) -> bool:
    """Also to another address, as some NATs of providers do, at the same port."""
    return (before.address, before.port) != (after.address, after.port)


def judge_nat(steady: Sequence[Seen], silences: Sequence[Silence]) -> Nat | None:
    """None where the server never said what it sees."""
    if not steady:
        return None
    first = steady[0]
    outside = f"{first.address} port {first.port}"
    if not any(map(translated, steady)):
        return Nat(Binding.NONE, outside)
    changes = [b.at - a.at for a, b in pairwise(steady) if _moved(a, b)]
    if changes:
        return Nat(Binding.REBINDS, outside, within=min(changes))
    pairs = [(s.seconds, not _moved(s.before, s.after)) for s in silences if s.before and s.after]
    kept = max((seconds for seconds, same in pairs if same), default=0.0)
    lost = min((seconds for seconds, same in pairs if not same), default=0.0)
    if not pairs or (lost and kept > lost):
        return Nat(Binding.UNCLEAR, outside, kept=kept, lost=lost)
    binding = Binding.FORGOTTEN if lost else Binding.KEPT
    return Nat(binding, outside, kept=kept, lost=lost)
