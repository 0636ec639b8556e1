"""Command lines, the machine they are for, and quantities as `tc` reads them."""

import shlex
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from netem.profile.conditions import Way

__all__ = [
    "HANDLE",
    "TABLE",
    "Command",
    "Ends",
    "Hop",
    "quantity",
    "rate",
    "share",
    "shell",
    "span",
]

HANDLE: Final = "7e:"
"""The handle of our root qdisc, by which it is known from anybody else's."""
TABLE: Final = "tenuto_netem"
"""Our nft table, family inet."""

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hop:
    """Where the lines run: a router has a device toward each end, an end host only one.

    A host with only `to_client` is the server, with only `to_server` the client.
    """

    to_client: str | None = None
    to_server: str | None = None

    def __post_init__(self) -> None:
        if self.to_client is None and self.to_server is None:
            raise ValueError("a hop without a device: give to_client, to_server or both")

    @property
    def is_router(self) -> bool:
        return self.to_client is not None and self.to_server is not None

    def leaves_by(self, way: Way) -> str | None:
        """The device by which packets of a direction leave this machine."""
        return self.to_server if way is Way.UP else self.to_client

    def enters_by(self, way: Way) -> str | None:
        return self.leaves_by(way.back)


@dataclass(frozen=True, slots=True)
class Ends:
    """Addresses of both ends, neighbours of the router: `198.18.0.2`, `fd00::2`."""

    client: tuple[str, ...]
    server: tuple[str, ...]

    def target(self, way: Way) -> tuple[str, ...]:
        return self.server if way is Way.UP else self.client


def shell(command: Command) -> str:
    """The line to type."""
    return shlex.join(command)


def quantity(value: float) -> str:
    """Five significant digits, without an exponent."""
    return f"{Decimal(f'{value:.5g}'):f}"


def span(seconds: float) -> str:
    return f"{quantity(seconds * 1_000)}ms"


def share(fraction: float) -> str:
    return f"{quantity(fraction * 100)}%"


def rate(bits_per_second: float) -> str:
    for size, unit in ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")):
        if bits_per_second >= size:
            return f"{quantity(bits_per_second / size)}{unit}"
    return f"{quantity(bits_per_second)}bit"
