"""Sixteen bits of sequence on the wire, 64 inside (RFC 1982, RFC 3550 appendix A.1)."""

from __future__ import annotations

__all__ = ["SEQUENCE_MODULUS", "extend", "truncate"]

SEQUENCE_MODULUS = 1 << 16
_HALF = SEQUENCE_MODULUS // 2


def truncate(sequence: int) -> int:
    """The 16 bits that travel."""
    return sequence % SEQUENCE_MODULUS


def extend(received: int, reference: int) -> int:
    """The full sequence nearest to `reference` whose low 16 bits are `received`.

    Exact while both are within 32,767 of each other (10.9 minutes of 20 ms frames). Of two
    equally near it takes the later one, and never one below zero.
    """
    ahead = (received - reference) % SEQUENCE_MODULUS
    if ahead > _HALF and reference + ahead >= SEQUENCE_MODULUS:
        return reference + ahead - SEQUENCE_MODULUS
    return reference + ahead
