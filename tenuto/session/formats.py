"""Which frames of a session are of which format."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.media import AudioFormat

__all__ = ["Formats", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """From frame `sequence` on the audio is this, until the next span begins.

    `id` counts the changes of a session from 0.
    """

    sequence: int
    audio: AudioFormat
    id: int = 0


class Formats:
    """The spans of the frames that are held, oldest first; one where nothing ever changed."""

    def __init__(self, audio: AudioFormat, start: int) -> None:
        self._spans = [Span(start, audio)]
        self._changes = 0
        self.newest = self._spans[0]
        self.largest = audio.frame_size
        """Bytes in the largest full frame of any span."""

    def __len__(self) -> int:
        return len(self._spans)

    def at(self, sequence: int) -> Span:
        """The span of a frame; the oldest one for frames that are gone."""
        for span in reversed(self._spans):
            if span.sequence <= sequence:
                return span
        return self._spans[0]

    def change(self, sequence: int, audio: AudioFormat) -> None:
        """The frames from `sequence` on are of another format."""
        newest = self.newest
        if newest.audio == audio:
            return
        if newest.sequence == sequence:
            # No frame was ever of that format: nobody needs to hear of it.
            self._spans.pop()
        if not self._spans or self._spans[-1].audio != audio:
            # Never an id twice: a listener may have been told of a format that came to nothing.
            self._changes += 1
            self._spans.append(Span(sequence, audio, self._changes))
        self._changed()

    def forget(self, first: int) -> None:
        """Let go of the spans whose every frame lies below `first`."""
        while len(self._spans) > 1 and self._spans[1].sequence <= first:
            del self._spans[0]
            self._changed()

    def _changed(self) -> None:
        self.newest = self._spans[-1]
        self.largest = max(span.audio.frame_size for span in self._spans)
