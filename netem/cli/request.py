"""What `run` was asked for."""

from dataclasses import dataclass
from typing import Final

from netem.profile import Profile

__all__ = ["BY_KERNEL", "Request", "ServeOrder"]

BY_KERNEL: Final = ("tc", "vm")
"""Drivers whose router is a kernel: it draws without a seed, and times no packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOrder:
    """A server side to start: a line for the shell, and how to tell that it is there."""

    line: str
    port: int | None
    """What it will open; None: whatever it opens first."""
    patience: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    profile: Profile
    seed: int
    driver: str
    command: tuple[str, ...]
    congestion: str = "cubic"
    localhost: bool = False
    serve: ServeOrder | None = None
    relay_to: tuple[str, int] | None = None
