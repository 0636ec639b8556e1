"""How many may be inside at once, in all and from one address; refusals are told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tenuto.telemetry.events import ConnectionRefused, Event

__all__ = ["Admission"]


_CALM = 0.9
"""The share of a bound at which an episode of refusals is over."""


class Admission:
    """A bound with its counter.

    `what` completes "N … " in the log line, which is written once per episode: from the
    first refusal until a tenth of the places is free again. `refused` counts every one.
    """

    def __init__(
        self,
        door: str,
        what: str,
        *,
        most: int,
        most_per_address: int,
        on_event: Callable[[Event], None],
    ) -> None:
        self.refused = 0
        self._door = door
        self._what = what
        self._most = most
        self._most_per_address = most_per_address
        self._on_event = on_event
        self._inside: Counter[str] = Counter()
        self._count = 0
        self._told = False

    def __len__(self) -> int:
        return self._count

    def admit(self, host: str) -> bool:
        """Count one more from this address in, unless a bound is reached."""
        if self._count >= self._most:
            return self._refuse(f"{self._most} {self._what}")
        # `get`, for a Counter remembers every address it is asked for by index.
        if self._inside.get(host, 0) >= self._most_per_address:
            return self._refuse(f"{self._most_per_address} {self._what} from one address")
        self._inside[host] += 1
        self._count += 1
        return True

    def leave(self, host: str) -> None:
        """One that was admitted is gone; `ValueError` for an address that has none inside."""
        if host not in self._inside:
            raise ValueError(f"nobody from {host} is inside")
        self._inside[host] -= 1
        self._count -= 1
        if (
            self._count <= _CALM * self._most
            and self._inside[host] <= _CALM * self._most_per_address
        ):
            self._told = False
        if not self._inside[host]:
            del self._inside[host]

    def _refuse(self, reason: str) -> bool:
        self.refused += 1
        if not self._told:
            self._told = True
            self._on_event(ConnectionRefused(self._door, reason))
        return False
