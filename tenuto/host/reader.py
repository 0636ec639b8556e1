"""What a host needs of whoever carries frames away."""

from __future__ import annotations

from typing import Protocol

from tenuto.errors import TenutoError

__all__ = ["Reader"]


class Reader(Protocol):
    """What carries a cursor's frames away; woken when some may be due."""

    def wake(self) -> None: ...

    def stop(self, reason: TenutoError) -> None:
        """Tell the listener why and end its stream, so that it does not look complete."""
        ...
