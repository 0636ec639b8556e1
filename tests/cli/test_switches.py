"""What a summary tells of changes of transport."""

from __future__ import annotations

from tenuto.cli.switches import MAX_SWITCHES, Switches
from tenuto.client import Interrupted, Moved, Resumed, Transport, TransportChosen, Unparked


def resumed(transport: Transport) -> Resumed:
    return Resumed(transport, "peer", gap=1.0, attempts=1, handshake=0.1)


def test_a_change_of_transport_has_its_reason_and_its_moment() -> None:
    switches = Switches()
    assert switches.last is None
    switches.note(TransportChosen("quic", "peer", 0.1), 0.1)
    switches.note(TransportChosen("tcp", "peer", 0.1), 2.9)  # Every leg that is opened beside.
    switches.note(Moved("tcp", "peer", 0.1, 0.2, "black hole"), 3.0)
    switches.note(Interrupted("reset", 9), 4.0)
    switches.note(resumed("tcp"), 5.0)
    assert switches.count == 1  # The same transport again is none.
    switches.note(Interrupted("has fallen silent", 99), 6.0)
    switches.note(TransportChosen("quic", "peer", 0.1), 7.0)
    switches.note(resumed("quic"), 7.25)
    switches.note(Unparked("quic", "peer", 99, 0.1), 50.0)
    switches.note(Unparked("tcp", "peer", 99, 0.1), 99.0)
    assert [each.fields() for each in switches.recent] == [
        {"at": 3.0, "from": "quic", "to": "tcp", "reason": "black hole"},
        {"at": 7.25, "from": "tcp", "to": "quic", "reason": "has fallen silent"},
        {"at": 99.0, "from": "quic", "to": "tcp", "reason": "paused for long"},
    ]


def test_the_newest_are_kept_and_all_are_counted() -> None:
    switches = Switches()
    switches.note(TransportChosen("quic", "peer", 0.1), 0.1)
    for number in range(MAX_SWITCHES + 2):
        switches.note(Moved("quic" if number % 2 else "tcp", "peer", 0.1, 0.2), number)
    assert switches.count == MAX_SWITCHES + 2
    assert (len(switches.recent), switches.recent[0].at) == (MAX_SWITCHES, 2)
