"""The parts of the loudspeaker that keep time, and calls that may never return."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

from tenuto.cli.aside import aside
from tenuto.cli.device import DeviceShape
from tenuto.cli.feed import Feed
from tenuto.cli.fifo import Fifo
from tenuto.cli.sinkclock import RateMeter, SinkClock
from tenuto.media import AudioFormat, Frame
from tenuto.playout import Player, PlayoutMode, PlayoutSnapshot


def test_bytes_come_out_as_they_went_in() -> None:
    fifo = Fifo()
    rng = random.Random(5)
    given = rng.randbytes(10_000)
    taken = b""
    at = 0
    while len(taken) < len(given):
        size = rng.randrange(200)
        fifo.push(given[at : at + size])
        at += size
        taken += fifo.take(rng.randrange(200))
    assert taken == given
    assert fifo.take(5) == b""


def test_the_clock_is_even_where_its_readings_are_not() -> None:
    clock, rng = SinkClock(), random.Random(3)
    clock.read(10.0)
    clock.passed(0.02)
    errors = []
    for n in range(1, 2000):
        true = 10.0 + n * 0.02 * 1.0002  # a card that is 200 ppm slow
        errors.append(clock.read(true + rng.uniform(-0.005, 0.005)) - true)
        clock.passed(0.02)
    assert max(map(abs, errors)) < 0.003
    assert abs(sum(errors[1000:]) / len(errors[1000:])) < 0.0005


def test_a_stall_is_taken_at_once() -> None:
    clock = SinkClock()
    clock.passed(1.0)  # nothing is known yet
    assert clock.read(5.0) == 5.0
    clock.passed(0.02)
    assert clock.read(5.5) == 5.5


def fault(rate: int, calls: list[tuple[float, int]]) -> int | None:
    meter = RateMeter(rate)
    for now, samples in calls:
        meter.took(samples, now)
    return meter.fault


def steady(rate: float, seconds: float, block: int = 480) -> list[tuple[float, int]]:
    return [(n * block / rate, block) for n in range(round(seconds * rate / block))]


def test_only_a_lasting_difference_is_a_fault() -> None:
    assert fault(48000, steady(48000, 10)) is None
    assert fault(48000, steady(44100, 10)) is None  # 8 %
    assert fault(48000, steady(24000, 3)) == pytest.approx(24000, rel=0.02)
    assert fault(48000, steady(24000, 2)) is None
    assert fault(44100, steady(96000, 3)) == pytest.approx(96000, rel=0.02)
    half = [call for call in steady(48000, 10) if int(call[0] * 2) % 2]
    assert fault(48000, half) is None  # it stalls, which says nothing of its rate


async def test_a_call_aside_gives_its_result_or_its_error() -> None:
    assert await aside(lambda: 7, 5.0) == 7
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0, 5.0)


async def test_what_comes_too_late_is_handed_over() -> None:
    go, late = threading.Event(), threading.Event()
    results: list[int] = []

    def slow() -> int:
        go.wait(10)
        return 7

    def take(result: int) -> None:
        results.append(result)
        late.set()

    with pytest.raises(TimeoutError):
        await aside(slow, 0.05, late=take)
    go.set()
    assert await asyncio.to_thread(late.wait, 5)
    assert results == [7]


def fed(mode: PlayoutMode, latency: float, block: int, lead: float) -> PlayoutSnapshot:
    """A minute over a quiet path to a card that holds `latency` and takes `block` samples."""
    audio, rng = AudioFormat(), random.Random(1)
    player, now = Player(audio, mode=mode), 0.0
    feed = Feed(player, audio, lambda: now)
    feed.attach(DeviceShape("card", audio.rate, 1, latency))
    sequence, due = 0, 0.05
    while due < 60.0:
        arrival = max(0.0, sequence * 0.02 - lead) + rng.uniform(0, 0.001)
        if arrival <= due:
            now = max(now, arrival)
            feed.insert([Frame(sequence, bytes(640), 320)], audio)
            sequence += 1
        else:
            now = due
            feed.pull(block, latency, False)
            due += block / audio.rate
    return feed.snapshot()


@pytest.mark.parametrize(("latency", "block"), [(0.0, 320), (0.06, 160), (0.1, 1024), (0.2, 3200)])
def test_a_card_that_holds_sound_costs_a_live_listener_no_waits(latency: float, block: int) -> None:
    snapshot = fed("live", latency, block, 0.2)
    assert snapshot.underruns <= 1
    assert snapshot.delay < 0.08
    gapless = fed("gapless", latency, block, 2.0)
    assert gapless.underruns == 0
    assert gapless.delay == pytest.approx(2.0, abs=0.15)
