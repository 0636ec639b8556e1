"""The frames that came and were not asked for yet, and what each of them is."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from tenuto.client.events import FormatAnnounced
from tenuto.media import AudioFormat, Frame

__all__ = ["Held"]


class Held:
    """In order. A session may change its format between two frames."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        self.format: AudioFormat | None = None
        """Of the frame that was taken last, or of the first one."""
        self._changes: deque[FormatAnnounced] = deque()
        """Formats of frames that are held here, but the first one's."""

    @property
    def ready(self) -> int:
        """Frames of the present format that can be taken."""
        if not self._changes or not self.frames:
            return len(self.frames)
        return bisect_left(self.frames, self._changes[0].sequence, key=_sequence)

    def take(self) -> Frame:
        frame = self.frames.popleft()
        while self._changes and self._changes[0].sequence <= frame.sequence:
            self.format = self._changes.popleft().audio
        return frame

    def announce(self, event: FormatAnnounced) -> None:
        """The frames that follow are of this kind."""
        if self.format is None:
            self.format = event.audio
            return
        # At most one for each frame held: one that no frame followed is forgotten.
        newest = self.frames[-1].sequence if self.frames else -1
        if self._changes and self._changes[-1].sequence > newest:
            self._changes.pop()
        self._changes.append(event)

    def drop_below(self, base: int) -> int:
        """Forget frames of an older epoch; how many they were."""
        held = len(self.frames)
        self.frames = deque(frame for frame in self.frames if frame.sequence >= base)
        return held - len(self.frames)


def _sequence(frame: Frame) -> int:
    return frame.sequence
