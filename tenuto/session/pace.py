"""How far a listener's playout has come, told from what it was sent and when."""

from __future__ import annotations

from tenuto.media import FRAME_DURATION

__all__ = ["PlayoutEstimate"]


class PlayoutEstimate:
    """A listener that plays in real time from the first frame it was sent.

    When it has been sent nothing more for longer than its buffer lasts, it stands still and
    goes on with the next frame: so a source's pause is never made good by a burst beyond
    the declared lead. What the listener says of itself is better than any estimate, but
    does not make what it was sent last any longer.
    """

    __slots__ = ("_anchor", "_anchor_time", "_lasts_until", "_sent")

    def __init__(self, start: int, now: float) -> None:
        self._anchor = self._sent = start
        self._anchor_time = self._lasts_until = now

    def sent(self, until: int, now: float) -> None:
        """All frames below `until` have now been sent."""
        if self.position(now) >= self._sent:
            self._anchor, self._anchor_time = self._sent, now
        self._lasts_until = max(self._lasts_until, now) + (until - self._sent) * FRAME_DURATION
        self._sent = until

    @property
    def end(self) -> int:
        """One past the last frame that was sent."""
        return self._sent

    def heard(self, sequence: int, now: float) -> None:
        """The listener itself says what it plays now; it goes on from there in real time."""
        self._anchor, self._anchor_time = min(sequence, self._sent), now

    def resumed(self, start: int, now: float) -> PlayoutEstimate:
        """The same listener's, who goes on at frame `start`: the frames before it have come."""
        estimate = PlayoutEstimate(start, now)
        if self._anchor <= start <= self._sent:
            # It still plays what came before the cut; a lead anew would come on top of that.
            estimate._anchor, estimate._anchor_time = self._anchor, self._anchor_time
            estimate._lasts_until = self._lasts_until - (self._sent - start) * FRAME_DURATION
        return estimate

    def playing(self, now: float) -> bool:
        """Is something of what was sent left to play in real time?

        A listener may say for ever that it stands still; others do not wait for it so long.
        """
        return now < self._lasts_until and self.position(now) < self._sent

    def position(self, now: float) -> float:
        """The frame now being played; never beyond what was sent."""
        played = self._anchor + (now - self._anchor_time) / FRAME_DURATION
        return min(played, self._sent)
