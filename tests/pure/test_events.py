import pytest

from tenuto.telemetry.events import (
    CertificateKept,
    CertificateReplaced,
    ConnectionRefused,
    DoorOpened,
    Event,
    Level,
    PeerFaulted,
    ServerStopped,
    SessionClosed,
    SessionOpened,
    SourceOffPace,
    SourceStuck,
    describe,
)


def test_an_event_is_described_by_its_name_and_fields_in_order() -> None:
    facts = describe(DoorOpened("quic", "127.0.0.1:4433", 1 << 20))
    assert list(facts.items()) == [
        ("event", "DoorOpened"),
        ("door", "quic"),
        ("address", "127.0.0.1:4433"),
        ("buffer", 1 << 20),
    ]
    assert describe(Event()) == {"event": "Event"}


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (DoorOpened("quic", "[::1]:4433", 0), Level.INFO),
        (SessionOpened("id", "tone", 16000, 1), Level.INFO),
        (SessionClosed("id", 5, "finished"), Level.INFO),
        (SourceStuck("id", "tone", 1.0), Level.ERROR),
        (SourceOffPace("stdin", 16000, 44100), Level.WARNING),
        (ConnectionRefused("tcp", "full"), Level.WARNING),
        (PeerFaulted("quic", "ValueError", "frame.py:1"), Level.ERROR),
        (CertificateReplaced("ab", "2030-01-01"), Level.INFO),
        (CertificateKept("no key"), Level.WARNING),
        (ServerStopped(3, 0.5), Level.INFO),
    ],
)
def test_levels_belong_to_the_class(event: Event, level: Level) -> None:
    assert event.level is level
    assert "level" not in describe(event)
