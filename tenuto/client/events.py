"""What happens beside the frames, in the past tense."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tenuto.client.errors import Failure
from tenuto.client.exchange import Transport
from tenuto.media import AudioFormat

__all__ = [
    "MAX_EVENTS",
    "Cut",
    "Event",
    "EventLog",
    "Finished",
    "FormatAnnounced",
    "GapSeen",
    "MarkReached",
    "NoticeReceived",
    "TransportChosen",
    "TransportFailed",
]

MAX_EVENTS = 256
"""Events a stream keeps for those who look later; the oldest make room."""


@dataclass(frozen=True, slots=True)
class TransportFailed:
    """A transport was tried and gave nothing; the next one is, if there is one."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class TransportChosen:
    """This transport carries the stream; `handshake` is seconds since the start."""

    transport: Transport
    peer: str
    handshake: float


@dataclass(frozen=True, slots=True)
class FormatAnnounced:
    """The frames behind it are of this kind; `sequence` is the next one's."""

    audio: AudioFormat
    sequence: int
    epoch: int
    epoch_base: int
    chunk_frames: int


@dataclass(frozen=True, slots=True)
class MarkReached:
    """The text at `text_offset` (code points) begins to sound in frame `sequence`."""

    sequence: int
    text_offset: int


@dataclass(frozen=True, slots=True)
class NoticeReceived:
    """The server said something: an error's code, or another word of its own.

    `fields` is the whole JSON object, `resume` and `retry_after` among it where given.
    """

    code: str
    message: str
    remedy: str = ""
    fields: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GapSeen:
    """`count` frames from `sequence` on did not come; `announced` if a GAP said so."""

    sequence: int
    count: int
    announced: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """END has come and its totals are right: frames and samples of this stream alone."""

    frames: int
    samples: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream stopped without END; `StreamCut` is raised from the iteration too."""

    reason: str
    next_sequence: int


Event = (
    TransportFailed
    | TransportChosen
    | FormatAnnounced
    | MarkReached
    | NoticeReceived
    | GapSeen
    | Finished
    | Cut
)


class EventLog:
    """Keeps the newest 256 events and hands each to a callback as it happens."""

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self._on_event = on_event
        self.recent: deque[Event] = deque(maxlen=MAX_EVENTS)

    def add(self, event: Event) -> None:
        self.recent.append(event)
        if self._on_event is not None:
            self._on_event(event)
