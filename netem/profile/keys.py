"""The vocabulary of a profile: which keys there are, which need another, which exclude another."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

__all__ = ["DIRECTION", "NAT", "NEEDS", "RIVALS", "SECTIONS", "TOP", "UDP", "nearest"]

TOP: Final = ("summary", "source", "extends", "both", "up", "down", "udp", "nat")
DIRECTION: Final = (
    "delay",
    "jitter",
    "distribution",
    "reordering",
    "loss",
    "burst",
    "gemodel",
    "fade",
    "blackout",
    "rate",
    "trace",
    "queue",
    "reorder",
    "duplicate",
    "corrupt",
    "mtu",
    "too_big",
)
UDP: Final = ("block", "block_way", "pass_first", "police", "police_burst", "port")
NAT: Final = ("rebind_every", "rebind_at", "idle", "inbound_refresh")
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"both": DIRECTION, "up": DIRECTION, "down": DIRECTION, "udp": UDP, "nat": NAT}
)

NEEDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "distribution": ("jitter",),
        "reordering": ("jitter",),
        "burst": ("loss",),
        "queue": ("rate", "trace"),
        "reorder": ("delay",),
        "too_big": ("mtu",),
        "block_way": ("block",),
        "pass_first": ("block",),
        "police_burst": ("police",),
        "port": ("block", "police"),
        "inbound_refresh": ("idle",),
    }
)
"""A key, and the keys of which one must be there for it to mean anything."""

RIVALS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "rate": ("trace",),
        "trace": ("rate",),
        "loss": ("gemodel",),
        "burst": ("gemodel",),
        "gemodel": ("loss", "burst"),
    }
)
"""A key, and those that say the same thing in another way."""


def nearest(word: str, known: Collection[str]) -> str:
    """` (did you mean "loss"?)`, or nothing when no known word is near."""
    near = get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f' (did you mean "{near[0]}"?)' if near else ""
