"""What a listener notes of a flow, by a clock of the test's own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bench.lab.listening.heard import FIRST_WITHIN, Heard
from bench.lab.payload import FRAME, frame
from tenuto.sources import clock_payload

MS = 1_000_000


@dataclass
class Clock:
    now: int = 5_000 * MS

    def __call__(self) -> int:
        return self.now

    def at(self, ms: float) -> None:
        """Since the start of the flow."""
        self.now = 5_000 * MS + int(ms * MS)


def due(number: int, first: float = 100.0) -> int:
    return 5_000 * MS + int(first * MS) + number * 20 * MS


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_frame_is_laid_out_as_the_products_source_has_it() -> None:
    assert frame(7, 123_456_789_012) == clock_payload(7, 123_456_789_012, FRAME)


def test_a_delay_counts_from_when_the_frame_was_due(clock: Clock) -> None:
    heard = Heard(3, 3.0, clock)
    clock.at(80)
    heard.connected()
    clock.at(145)
    heard.frame(frame(1, due(1)))
    clock.at(180)
    heard.frame(frame(1, due(1)))
    heard.frame(frame(0, due(0)))
    record = heard.record(0.004)
    assert record.delays == pytest.approx((0.080, 0.025, None))
    assert (record.duplicates, record.trouble, record.loop_lag) == (1, None, 0.004)
    assert record.handshake == pytest.approx(0.080)
    assert record.first_audio == pytest.approx(0.145)
    assert record.first_due == pytest.approx(5.1)


def test_a_flow_is_over_when_all_has_come(clock: Clock) -> None:
    heard = Heard(2, 3.0, clock)
    clock.at(200)
    heard.frame(frame(0, due(0)))
    assert not heard.over
    heard.frame(frame(1, due(1)))
    assert heard.over


def test_what_is_missing_has_its_time_after_the_last_was_due(clock: Clock) -> None:
    heard = Heard(3, 3.0, clock)
    clock.at(160)
    heard.frame(frame(2, due(2)))
    clock.at(140 + 3000)
    assert not heard.over
    clock.at(140 + 3001)
    assert heard.over
    assert heard.record(0.0).delays == pytest.approx((None, None, 0.020))


def test_a_flow_without_a_frame_ends_and_says_so(clock: Clock) -> None:
    heard = Heard(3, 3.0, clock)
    clock.at(FIRST_WITHIN * 1000)
    assert not heard.over
    clock.at(FIRST_WITHIN * 1000 + 1)
    assert heard.over
    record = heard.record(0.0)
    assert record.trouble == "no frame came within 10 s"
    assert (record.delays, record.first_audio, record.first_due) == ((None,) * 3, None, None)


@pytest.mark.parametrize(
    ("payload", "trouble"),
    [
        (b"short", "a frame of 5 bytes says nothing about itself"),
        (frame(3, due(0)), "frame 3 was never asked for"),
        (frame(1, due(60)), "frame 1 came 1.1 s before it was due"),
    ],
)
def test_what_cannot_be_is_trouble_and_no_delay(clock: Clock, payload: bytes, trouble: str) -> None:
    heard = Heard(3, 3.0, clock)
    clock.at(200)
    heard.frame(payload)
    heard.fail("what comes later")
    record = heard.record(0.0)
    assert record.trouble == trouble
    assert record.delays == (None, None, None)
