"""Events: what is logged once each. Whatever happens per frame or per packet is counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar

__all__ = [
    "AddressSkipped",
    "BufferCutShort",
    "CertificateKept",
    "CertificateReplaced",
    "ConnectionRefused",
    "DoorOpened",
    "EndForced",
    "Event",
    "Level",
    "PeerFaulted",
    "RestartRefused",
    "ServerStopped",
    "SessionClosed",
    "SessionOpened",
    "SourceOffPace",
    "SourceStuck",
    "describe",
]


class Level(Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events; `level` belongs to the class."""

    level: ClassVar[Level] = Level.INFO


@dataclass(frozen=True, slots=True)
class DoorOpened(Event):
    """A door listens. `address` is the one really bound; `buffer` in bytes, as granted."""

    door: str
    address: str
    buffer: int


@dataclass(frozen=True, slots=True)
class BufferCutShort(Event):
    """The kernel grants a socket much less than was asked for, in bytes: bursts may be lost."""

    level: ClassVar[Level] = Level.WARNING
    address: str
    asked: int
    granted: int
    advice: str


@dataclass(frozen=True, slots=True)
class SessionOpened(Event):
    session: str
    source: str
    rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class SessionClosed(Event):
    """`outcome` is "finished", "expired", "closed" or an error's name."""

    session: str
    frames: int
    outcome: str


@dataclass(frozen=True, slots=True)
class SourceStuck(Event):
    """A source was cancelled and has not ended since; the server stops without it."""

    level: ClassVar[Level] = Level.ERROR
    session: str
    source: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SourceOffPace(Event):
    """Live audio comes at another rate than it claims; said once per session. In samples/s."""

    level: ClassVar[Level] = Level.WARNING
    source: str
    announced: int
    measured: int


@dataclass(frozen=True, slots=True)
class ConnectionRefused(Event):
    """A bound was reached; said once per episode, the rest is counted."""

    level: ClassVar[Level] = Level.WARNING
    door: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerFaulted(Event):
    """A guard caught an exception; only this peer's connection was closed."""

    level: ClassVar[Level] = Level.ERROR
    door: str
    fault: str
    place: str


@dataclass(frozen=True, slots=True)
class CertificateReplaced(Event):
    fingerprint: str
    not_after: str


@dataclass(frozen=True, slots=True)
class CertificateKept(Event):
    """The pair on disk is broken; the one in use stays."""

    level: ClassVar[Level] = Level.WARNING
    reason: str


@dataclass(frozen=True, slots=True)
class AddressSkipped(Event):
    """This machine lacks the address family; the other addresses are served."""

    level: ClassVar[Level] = Level.WARNING
    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class RestartRefused(Event):
    """The command would not start anew as it is; this process goes on serving."""

    level: ClassVar[Level] = Level.WARNING
    reason: str


@dataclass(frozen=True, slots=True)
class EndForced(Event):
    """The event loop has not come to the end in time; `place` is the line that holds it up."""

    level: ClassVar[Level] = Level.ERROR
    place: str


@dataclass(frozen=True, slots=True)
class ServerStopped(Event):
    sessions: int
    seconds: float


def describe(event: Event) -> dict[str, str | int | float]:
    """The event's name and fields, flat, in the order they are declared."""
    facts: dict[str, str | int | float] = {"event": type(event).__name__}
    for field in fields(event):
        facts[field.name] = getattr(event, field.name)
    return facts
