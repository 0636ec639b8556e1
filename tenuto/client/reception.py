"""From body bytes to frames in order, and the account of what came. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tenuto.client.asking import Place
from tenuto.client.events import (
    Event,
    Finished,
    FormatAnnounced,
    GapSeen,
    MarkReached,
    NoticeReceived,
)
from tenuto.client.problem import error_code
from tenuto.errors import RemoteProtocolError
from tenuto.media import Frame
from tenuto.redaction import redact
from tenuto.wire import End, Format, Gap, Keepalive, Mark, Notice, Record, RecordDecoder

__all__ = ["Incomplete", "Reception"]


@dataclass(frozen=True, slots=True)
class Incomplete:
    """END has come, but by its totals frames are missing at the end."""

    reason: str


class Reception:
    """Ordered streams of records, one leg after the other, in one account.

    A frame below the next expected one is a duplicate and dropped; a jump ahead is a gap
    (on one ordered stream what was skipped will never come). `finished` is set by END:
    `Finished` if its totals agree with what came, `Incomplete` if the tail is missing.
    """

    def __init__(self) -> None:
        self._decoder = RecordDecoder()
        self._anew = True
        self._skipped = 0
        self._seconds_before = 0.0
        self._rate_samples = 0
        self._epoch_samples = 0
        self.format: Format | None = None
        self.next_sequence = 0
        """The first frame that has not come yet."""
        self.received = 0
        self.samples = 0
        self.gaps = 0
        """Frames, not episodes."""
        self.duplicates = 0
        self.notice: NoticeReceived | None = None
        """The last one with an error's code, while no frame has come after it: the reason of a
        cut that follows."""
        self.finished: Finished | Incomplete | None = None
        self.text_offset: int | None = None
        """The last MARK's, of those whose sound has begun in the present epoch."""
        self.signs_of_life = 0
        """KEEPALIVEs of this leg."""

    def begin_leg(self, *, anew: bool = False) -> None:
        """The bytes that follow are another leg's; `anew`: those of another session too.

        A frame that both legs bring counts as it came first, and as a duplicate then.
        """
        self._decoder = RecordDecoder()
        self._anew = anew
        self.notice = None
        self.finished = None
        self.signs_of_life = 0

    @property
    def epoch(self) -> int | None:
        """None before FORMAT."""
        return None if self.format is None else self.format.epoch

    def place(self, session: str | None) -> Place:
        """Where this session's audio goes on."""
        return Place(session, self.epoch, self.next_sequence, self.text_offset)

    @property
    def seconds(self) -> float:
        """Of the frames received; their rates may differ."""
        if self.format is None:
            return 0.0
        return self._seconds_before + self._rate_samples / self.format.audio.rate

    def feed(self, data: bytes) -> tuple[list[Frame], list[Event]]:
        """Raises `RemoteProtocolError` for bytes that break the format; then all is over."""
        frames: list[Frame] = []
        events: list[Event] = []
        for record in self._decoder.feed(data):
            self._take(record, frames, events)
        return frames, events

    def _take(self, record: Record, frames: list[Frame], events: list[Event]) -> None:
        match record:
            case Frame():
                if self._accept(record, events):
                    frames.append(record)
            case Format():
                self._adopt(record)
                events.append(_announced(record))
            case Gap(sequence, count):
                self._skip_to(sequence, events, announced=False)
                self._skip_to(sequence + count, events, announced=True)
            case Mark(sequence, text_offset):
                events.append(MarkReached(sequence, text_offset))
            case Notice():
                self._notify(_notice(record), events)
            case End():
                self.finished = self._judge(record)
                if isinstance(self.finished, Finished):
                    events.append(self.finished)
            case Keepalive():
                self.signs_of_life += 1
            case _:
                pass  # a copy has nothing to repair on an ordered stream; others are not ours

    def _notify(self, notice: NoticeReceived | None, events: list[Event]) -> None:
        if notice is None:
            return
        if error_code(notice.code) is not None:
            self.notice = notice
        events.append(notice)

    def _accept(self, frame: Frame, events: list[Event]) -> bool:
        if frame.sequence < self.next_sequence:
            self.duplicates += 1
            return False
        self._skip_to(frame.sequence, events, announced=False)
        self.notice = None
        self.next_sequence += 1
        self.received += 1
        self.samples += frame.samples
        self._epoch_samples += frame.samples
        self._rate_samples += frame.samples
        if frame.marks:
            self.text_offset = frame.marks[-1]
        return True

    def _adopt(self, format: Format) -> None:
        before, anew = self.format, self._anew
        self._anew = False
        if before is None:
            self._begin_epoch(format.sequence, format)
        elif anew:
            # A new session counts on from where we are; what it leaves out is a gap.
            if format.sequence < self.next_sequence:
                raise RemoteProtocolError(
                    f"the new session begins with frame {format.sequence}, and not with "
                    f"{self.next_sequence}"
                )
            self._begin_epoch(self.next_sequence, format)
        elif format.epoch != before.epoch:
            self._begin_epoch(max(format.epoch_base, self.next_sequence), format)
        self._seconds_before, self._rate_samples = self.seconds, 0
        self.format = format

    def _begin_epoch(self, start: int, format: Format) -> None:
        self._epoch_samples = 0
        self._skipped = start - format.epoch_base
        self.next_sequence = start
        self.text_offset = None

    def _skip_to(self, sequence: int, events: list[Event], *, announced: bool) -> None:
        missing = sequence - self.next_sequence
        if missing > 0:
            events.append(GapSeen(self.next_sequence, missing, announced))
            self.gaps += missing
            self._skipped += missing
            self.next_sequence = sequence

    def _judge(self, end: End) -> Finished | Incomplete:
        """Hold END's totals, which count the epoch from its base, against what came."""
        if self.format is None:
            raise RemoteProtocolError("END came before FORMAT")
        missing = self.format.epoch_base + end.frames - self.next_sequence
        if missing > 0:
            return Incomplete(f"END counts {end.frames} frames, of which {missing} did not come")
        # Of frames that were skipped nobody here knows how long they were: those before a new
        # format may be short, like the last one.
        whole = not self._skipped
        if missing < 0 or (whole and self._epoch_samples != end.samples):
            raise RemoteProtocolError(
                f"END counts {end.frames} frames and {end.samples} samples, but "
                f"{end.frames - missing} and {self._epoch_samples} came"
            )
        return Finished(self.received, self.samples)


def _announced(format: Format) -> FormatAnnounced:
    return FormatAnnounced(
        format.audio, format.sequence, format.epoch, format.epoch_base, format.chunk_frames
    )


def _notice(record: Notice) -> NoticeReceived | None:
    """None for a body that is no JSON object, which readers ignore."""
    try:
        fields = json.loads(record.json)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    return NoticeReceived(
        code=str(fields.get("code", "")),
        message=redact(str(fields.get("message", ""))),
        remedy=redact(str(fields.get("remedy", ""))),
        fields=fields,
    )
