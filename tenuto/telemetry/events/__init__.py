"""Facts worth telling an operator, in the past tense. Pure."""

from tenuto.telemetry.events.facts import (
    AddressSkipped,
    BufferCutShort,
    CertificateKept,
    CertificateReplaced,
    ConnectionRefused,
    DoorOpened,
    Event,
    Level,
    PeerFaulted,
    RestartRefused,
    ServerStopped,
    SessionClosed,
    SessionOpened,
    SourceOffPace,
    SourceStuck,
    describe,
)

__all__ = [
    "AddressSkipped",
    "BufferCutShort",
    "CertificateKept",
    "CertificateReplaced",
    "ConnectionRefused",
    "DoorOpened",
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
