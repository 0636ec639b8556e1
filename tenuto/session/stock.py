"""What a session has to give: the frames of its present epoch, their formats and their marks."""

from __future__ import annotations

from tenuto.media import FRAME_DURATION, AudioFormat, Frame, Piece
from tenuto.session.formats import Formats, Span
from tenuto.session.limits import DEFAULT_LEAD, SessionLimits
from tenuto.session.marks import MarkHistory
from tenuto.session.ring import Ring

__all__ = ["Stock", "frames_of"]


class Stock:
    """Frames by their numbers, and how many of them are kept.

    An epoch is a range of numbers with a base: what lies below the base is never given to anybody.
    """

    def __init__(self, audio: AudioFormat, limits: SessionLimits, start: int) -> None:
        self.limits = limits
        self.start = start
        self.epoch = 0
        self.base = start
        """The first frame of this epoch."""
        self.samples = 0
        """Samples per channel produced in this epoch."""
        self._high = frames_of(limits.high_watermark)
        self._longest_lead = DEFAULT_LEAD
        self._ring = Ring(self._window(self._longest_lead), start)
        self._formats = Formats(audio, start)
        self._marks = MarkHistory()

    @property
    def end(self) -> int:
        """One past the newest frame; all the frames there will be once `finished`."""
        return self._ring.end

    @property
    def first(self) -> int:
        """The oldest frame that a listener can still ask for."""
        return max(self._ring.first, self.end - self._ring.capacity + self._high)

    def text_offset(self, sequence: int) -> int | None:
        """Where the text is in a frame of this epoch, held or not; None where nobody knows."""
        return self._marks.at(sequence)

    def growth(self, lead: float | None) -> int:
        """Bytes by which a listener with this lead would widen the window."""
        longest = max(self._longest_lead, lead or 0.0)
        return (self._window(longest) - self._ring.capacity) * self._formats.largest

    # Format

    @property
    def audio(self) -> AudioFormat:
        """The format of the newest frame, or of the next where `reformat` has just changed it."""
        return self._formats.newest.audio

    @property
    def newest_format(self) -> Span:
        """The format of the newest frame and since when; changed, with another id."""
        return self._formats.newest

    def format_at(self, sequence: int) -> Span:
        """The format of a frame that is held or comes next."""
        return self._formats.at(sequence)

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest full frame that is held or comes next."""
        return self._formats.largest

    def widening(self, audio: AudioFormat) -> int:
        """Bytes by which frames of this format would widen the footprint."""
        return max(0, audio.frame_size - self._formats.largest) * self._ring.capacity

    def reformat(self, audio: AudioFormat) -> None:
        """The frames appended from now on are of this format."""
        self._formats.change(self.end, audio)

    def _store(self, piece: Piece) -> Frame:
        """Number a piece."""
        frame = Frame(self._ring.end, piece.payload, piece.samples, piece.marks)
        self._ring.append(frame)
        if len(self._formats) > 1:
            self._formats.forget(self._ring.first)
        if piece.marks:
            self._marks.add(frame.sequence, piece.marks)
        self.samples += piece.samples
        return frame

    def _renew(self, audio: AudioFormat | None) -> None:
        """Let go of everything and begin a new epoch, in another format if one is given."""
        self.epoch += 1
        self.base = self.end
        self.samples = 0
        self._ring.clear()
        self._marks.clear()
        if audio is not None:
            self._formats.change(self.base, audio)
        self._formats.forget(self.base)

    def _widen(self, lead: float | None) -> None:
        self._longest_lead = max(self._longest_lead, lead or 0.0)
        self._ring.widen(self._window(self._longest_lead))

    def _window(self, longest_lead: float) -> int:
        """Frames to hold: what may be ahead, what may be unplayed, what may be asked again.

        And as many as may be produced between an attach at the oldest and its first `take`.
        """
        return 2 * self._high + frames_of(longest_lead + self.limits.replay)


def frames_of(seconds: float) -> int:
    return round(seconds / FRAME_DURATION)
