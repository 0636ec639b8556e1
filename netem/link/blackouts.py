"""Windows in which nothing passes, at moments that the profile names."""

from netem.profile import Blackout

__all__ = ["Blackouts"]


class Blackouts:
    def __init__(self, blackouts: tuple[Blackout, ...], started: float) -> None:
        for blackout in blackouts:
            if blackout.every is not None and blackout.every <= 0.0:
                raise ValueError(f"a blackout cannot come again every {blackout.every} s")
        self._blackouts = blackouts
        self._started = started

    def drops(self, now: float) -> bool:
        return any(_covers(blackout, now - self._started) for blackout in self._blackouts)


def _covers(blackout: Blackout, elapsed: float) -> bool:
    since = elapsed - blackout.start
    if since < 0.0:
        return False
    if blackout.every is not None:
        since %= blackout.every
    return since < blackout.length
