"""When a client that was cut off comes back: never at the same instant as all the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenuto.errors import OperatorError

__all__ = ["Retries", "RetryPolicy"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits of 0 to min(`cap`, `base` * 2**n) seconds, the first one included.

    The draw is uniform over the whole window, and the cap is applied before it: at the cap too
    clients are spread over all of it. `attempts` bounds their number beside `patience`.
    """

    base: float = 0.1
    cap: float = 4.0
    patience: float = 60.0
    """Seconds from an interruption to the last attempt."""
    stable: float = 10.0
    """Seconds of audio after which the next interruption counts from 0 again."""
    forgiving: float = 0.25
    """Seconds of audio that make one attempt forgotten, before that."""
    spread: float = 1.0
    """Seconds over which those come back, at least, who were cut off together; later twice."""
    crowd: float = 30.0
    """The longest window, where the server has told how many come back."""
    attempts: int | None = None

    def __post_init__(self) -> None:
        spreads = (self.base, self.cap, self.spread, self.crowd)
        times = (*spreads, self.patience, self.stable, self.forgiving)
        whole = self.attempts is None or self.attempts > 0
        if not (whole and all(math.isfinite(time) and time >= 0 for time in times)):
            raise OperatorError(
                f"{self} retries at no time that there is",
                remedy="give times of 0 seconds or more, and at least one attempt",
            )

    def window(
        self,
        attempt: int,
        *,
        first: bool = False,
        many: bool = False,
        unheard: float = 0.0,
        crowd: float = 0.0,
    ) -> float:
        """The longest wait before attempt 0, 1, 2 ..., unless the server asks for more.

        `many` were probably cut off in the same instant: they are spread. `unheard` is how long
        nobody would hear that the `first` attempt of an interruption waits: where that is enough
        for a spread, it is the spread, and nobody waits for longer. Within `crowd` seconds the
        server can take back all it had: it is the least window of `many`.
        """
        # 2**n is a float only up to 1,023; the cap is reached long before.
        window = self.base * 2.0 ** min(attempt, 64)
        if first and unheard > self.spread:
            window = unheard if many else min(window, unheard)
        elif many:
            window = max(window, self.spread if first else 2 * self.spread)
        window = min(self.cap, window)
        return max(window, min(crowd, self.crowd)) if many else window

    def forgotten(self, attempts: int, flowed: float) -> int:
        """How many attempts still count, of so many, after `flowed` seconds of audio."""
        if flowed >= self.stable or attempts * self.forgiving <= flowed:
            return 0
        return attempts - int(flowed / self.forgiving)


class Retries:
    """One stream's interruptions and attempts. `now` is in seconds of one clock."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.attempt = 0
        """How many were made and are not forgotten: audio that flows makes them so."""
        self._first = True
        self._give_up_at: float | None = None
        self._flowing_since: float | None = None

    def interrupted(self, now: float) -> None:
        """The audio has stopped. Told again before it flows, this is the same interruption."""
        if self._give_up_at is not None:
            return
        if self._flowing_since is not None:
            self.attempt = self.policy.forgotten(self.attempt, now - self._flowing_since)
        self._first = True
        self._flowing_since = None
        self._give_up_at = now + self.policy.patience

    def flowing(self, now: float) -> None:
        """Audio comes again."""
        if self._give_up_at is not None:
            self._give_up_at = None
            self._flowing_since = now

    def next_wait(
        self,
        now: float,
        draw: float,
        *,
        retry_after: float = 0.0,
        many: bool = False,
        unheard: float = 0.0,
        crowd: float = 0.0,
    ) -> float | None:
        """Seconds until the next attempt, which counts as made; None once patience has ended.

        `draw` is random, of 0 to 1. `retry_after` is a floor: the jitter comes on top, for it
        was told to many. `many`, `unheard` and `crowd` are explained at `RetryPolicy.window`; a
        crowd takes no more than half of the patience that is left.
        """
        policy = self.policy
        if policy.attempts is not None and self.attempt >= policy.attempts:
            return None
        if self._give_up_at is None:
            return None
        crowd = min(crowd, (self._give_up_at - now) / 2)
        window = policy.window(
            self.attempt, first=self._first, many=many, unheard=unheard, crowd=crowd
        )
        wait = max(0.0, retry_after) + draw * window
        if now + wait > self._give_up_at:
            return None
        self.attempt += 1
        self._first = False
        return wait
