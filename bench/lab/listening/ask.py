"""What a listener is told, and where the servers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

__all__ = ["FLOOR_PORT", "HOST", "PRODUCT_PORT", "REFERENCE_PORT", "Ask"]

HOST: Final = "127.0.0.1"
"""Of the servers; on the listener's side of a bed it leads across the link."""

# Nobody else is in the servers' network.
PRODUCT_PORT: Final = 4433
REFERENCE_PORT: Final = 4434
FLOOR_PORT: Final = 4435
"""Where the reference server's window has a floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One flow."""

    frames: int
    ca: str
    """The file with the certificate to trust."""
    patience: float
    """Seconds for what is missing after the last frame was due; and for a first frame at all."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    """The mode's own."""

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "options": dict(self.options)}
