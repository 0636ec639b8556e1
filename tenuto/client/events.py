"""What happens beside the frames, in the past tense."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tenuto.client.errors import Failure
from tenuto.client.exchange import Transport, TransportChoice
from tenuto.media import AudioFormat

__all__ = [
    "MAX_EVENTS",
    "Cut",
    "EpochBegun",
    "Event",
    "EventLog",
    "Finished",
    "FormatAnnounced",
    "GapSeen",
    "Interrupted",
    "MarkReached",
    "Moved",
    "NoticeReceived",
    "Parked",
    "Rebound",
    "Restarted",
    "Resumed",
    "Retrying",
    "Stayed",
    "Suspected",
    "TransportChosen",
    "TransportFailed",
    "Unparked",
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


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The leg is lost before END; the stream goes on by itself from `next_sequence`."""

    reason: str
    next_sequence: int


@dataclass(frozen=True, slots=True)
class Retrying:
    """Attempt number `attempt` (from 1) to go on begins in `wait` seconds."""

    attempt: int
    wait: float


@dataclass(frozen=True, slots=True)
class Resumed:
    """Audio comes again: `gap` seconds after it stopped, `handshake` to the new leg's being open.

    `attempts` counts those that were needed, this one included.
    """

    transport: Transport
    peer: str
    gap: float
    attempts: int
    handshake: float


@dataclass(frozen=True, slots=True)
class Restarted:
    """The old session's frames are gone: a new session goes on from frame `sequence`.

    It leaves out `skip` frames of its source, or speaks again from `text_offset` (code points).
    """

    session: str | None
    sequence: int
    skip: int | None = None
    text_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """The stream goes on over another leg: seconds from when that was asked for.

    `reason`: "asked", "black hole", "throttled", "late frames", "QUIC again", "network change".
    Of two that leave a leg which brings too little, "throttled" is said of one that still brings
    a record each half second.
    """

    transport: Transport
    peer: str
    handshake: float
    first_frame: float
    reason: str = "asked"


@dataclass(frozen=True, slots=True)
class Suspected:
    """Audio is overdue by `lag` seconds on this transport; a move may follow."""

    transport: Transport
    lag: float


@dataclass(frozen=True, slots=True)
class Stayed:
    """A move that nobody asked for came to nothing, and the stream goes on where it was."""

    transport: TransportChoice
    """Where it would have gone."""
    reason: str


@dataclass(frozen=True, slots=True)
class Rebound:
    """The connection goes on from another port of this machine."""

    transport: Transport
    peer: str


@dataclass(frozen=True, slots=True)
class Parked:
    """In a pause the connection was lost, or closed after a while: none until `resume`."""

    next_sequence: int
    expires_in: float | None
    """Seconds that the session lives on, as far as the server said."""


@dataclass(frozen=True, slots=True)
class Unparked:
    """A new connection goes on from frame `next_sequence`; `handshake` is in seconds."""

    transport: Transport
    peer: str
    next_sequence: int
    handshake: float


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """What lies below frame `base` is not to be played; `dropped` frames of it were held."""

    epoch: int
    base: int
    dropped: int


Event = (
    TransportFailed
    | TransportChosen
    | FormatAnnounced
    | MarkReached
    | NoticeReceived
    | GapSeen
    | Interrupted
    | Retrying
    | Resumed
    | Restarted
    | Moved
    | Suspected
    | Stayed
    | Rebound
    | Parked
    | Unparked
    | EpochBegun
    | Finished
    | Cut
)


class EventLog:
    """Keeps the newest 256 events and hands each to a callback as it happens.

    What that raises would tear whatever is being done: it is kept for whoever asks for frames.
    """

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self.on_raised: Callable[[], None] = lambda: None
        """Called when there is something for `check` to raise."""
        self.recent: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._on_event = on_event
        self._raised: Exception | None = None

    def add(self, event: Event) -> None:
        self.recent.append(event)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - the caller's own
            self._raised = self._raised or error
            self.on_raised()

    def check(self) -> None:
        """Raise, once, what the callback raised first."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
