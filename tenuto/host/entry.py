"""What a host keeps beside each session."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenuto.host.producer import Producer
from tenuto.host.reader import Reader
from tenuto.session import Cursor, Session

__all__ = ["Entry"]


@dataclass(slots=True)
class Entry:
    """A session with its producer, its readers and the name that all its listeners share."""

    session: Session
    producer: Producer | None = None
    shared: str | None = None
    readers: dict[Cursor, Reader] = field(default_factory=dict)
    waking: bool = False
    """`wake` will be called soon."""

    def room(self) -> None:
        """The session may want more."""
        if self.producer is not None:
            self.producer.room()

    def wake(self) -> None:
        self.waking = False
        for reader in list(self.readers.values()):
            reader.wake()

    def outcome(self, how: str) -> str:
        """What became of its audio, or else how the session went."""
        if self.session.failure is not None:
            return str(self.session.failure.code.value)
        return "finished" if self.session.finished else how
