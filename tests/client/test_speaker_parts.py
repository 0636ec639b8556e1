"""The parts of the loudspeaker that keep time, and calls that may never return."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tenuto.cli.aside import aside
from tenuto.cli.device import DeviceShape
from tenuto.cli.feed import Feed
from tenuto.cli.fifo import Fifo
from tenuto.cli.sinkclock import RateMeter, SinkClock
from tenuto.cli.sinkevents import SinkAccount
from tenuto.cli.tally import Made, Tally
from tenuto.cli.together import together
from tenuto.media import AudioFormat, Frame
from tenuto.playout import Player, PlayoutMode


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


def fed(
    mode: PlayoutMode,
    latency: float,
    block: int,
    lead: float,
    rate: int = 16000,
    formats: Sequence[AudioFormat] = (AudioFormat(),),
) -> SinkAccount:
    """A minute over a quiet path to a card that holds `latency` and takes `block` samples."""
    rng = random.Random(1)
    player, now = Player(formats[0], mode=mode), 0.0
    feed = Feed(player, formats[0], lambda: now)
    feed.attach(DeviceShape("card", rate, 1, latency))
    sequence, due = 0, 0.05
    while due < 60.0:
        arrival = max(0.0, sequence * 0.02 - lead) + rng.uniform(0, 0.001)
        if arrival <= due:
            now = max(now, arrival)
            audio = formats[sequence // 500 % len(formats)]
            feed.insert([Frame(sequence, bytes(audio.frame_size), audio.rate // 50)], audio)
            sequence += 1
        else:
            now = due
            feed.pull(block, latency, False)
            due += block / rate
    assert feed.failure is None
    return SinkAccount(*feed.snapshot(), device=None, reopened=0, underflows=0)


@pytest.mark.parametrize(("latency", "block"), [(0.0, 320), (0.06, 160), (0.1, 1024), (0.2, 3200)])
def test_a_card_that_holds_sound_costs_a_live_listener_no_waits(latency: float, block: int) -> None:
    snapshot = fed("live", latency, block, 0.2).playout
    assert snapshot.underruns <= 1
    assert snapshot.delay < 0.08
    gapless = fed("gapless", latency, block, 2.0).playout
    assert gapless.underruns == 0
    assert gapless.delay == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("rate", [44100, 48000])
@pytest.mark.parametrize("block", [100, 256, 441, 1023, 4410, 4999])
def test_a_filter_that_gives_out_lumps_moves_no_time(rate: int, block: int) -> None:
    """Clocks are exact: nothing is to be corrected, though reads come in bunches."""
    gapless = fed("gapless", 0.1, block, 2.0, rate)
    assert (gapless.made.shrunk, gapless.made.stretched) == (0.0, 0.0)
    assert gapless.playout.underruns == 0
    assert gapless.playout.delay == pytest.approx(2.0, abs=0.15)
    live = fed("live", 0.1, block, 0.2, rate)
    assert live.playout.underruns == 0
    assert live.playout.delay < 0.05
    assert live.made.shrunk < 0.25  # the lead, once
    assert live.made.stretched < 0.02


@pytest.mark.parametrize("block", [256, 1023])
def test_time_goes_on_evenly_from_format_to_format(block: int) -> None:
    formats = [AudioFormat(16000), AudioFormat(24000), AudioFormat(48000, 2), AudioFormat(22050)]
    account = fed("gapless", 0.1, block, 2.0, 44100, formats)
    assert account.made.shrunk + account.made.stretched < 0.05
    assert account.playout.underruns == 0
    assert account.playout.delay == pytest.approx(2.0, abs=0.15)


def test_samples_of_different_rates_are_counted_as_time() -> None:
    tally = Tally(AudioFormat(16000))
    snapshot = Player(AudioFormat()).snapshot(0.0)
    first = replace(snapshot, concealed_samples=16000, shrunk_samples=160)
    assert tally.of(first) == Made(1.0, 0.01, 0.0)
    tally.change(first, AudioFormat(48000))
    second = replace(first, concealed_samples=16000 + 48000, stretched_samples=480)
    assert tally.of(second) == Made(2.0, 0.01, 0.01)
    third = replace(second, concealed_samples=100_000)
    tally.pass_over(third, AudioFormat(16000))
    assert tally.of(third) == Made(1.0, 0.01, 0.0)
    assert tally.of(replace(third, concealed_samples=116_000)) == Made(2.0, 0.01, 0.0)


def test_what_a_live_listener_is_spared_is_not_counted_as_played() -> None:
    audio, now = AudioFormat(), 0.0
    feed = Feed(Player(audio, mode="live"), audio, lambda: now)
    for n in range(200):
        now = n * 0.02
        feed.insert([Frame(n, bytes(640), 320)], audio)
    feed.attach(DeviceShape("card", 16000, 1, 0.03))
    feed.skip()
    playout, made, left_out = feed.snapshot()
    assert playout.played == playout.concealed == 0
    assert 180 < left_out.played < 200
    assert left_out.seconds == pytest.approx(left_out.played * 0.02, abs=0.3)
    assert made == Made()
    feed.pull(320, 0.03, False)
    assert feed.snapshot()[0].played == 1
    fields = SinkAccount(playout, made, left_out, None, 0, 0).fields()["playout"]
    assert (fields["played"], fields["left_out"]) == (0, left_out.played)
    assert fields["left_out_ms"] == pytest.approx(1000 * left_out.seconds)


@pytest.mark.parametrize("mode", ["live", "gapless"])
@pytest.mark.parametrize("stopped", [5.0, 20.0, 60.0])
def test_a_process_that_was_stopped_is_soon_back_at_the_present(
    mode: PlayoutMode, stopped: float
) -> None:
    """Nothing is pulled and nothing comes; then all that waited comes at once.

    A live listener leaves out what it missed. A gapless one hears every frame.
    """
    audio, now, sequence = AudioFormat(), 0.0, 0
    player = Player(audio, mode=mode, drift=False, capacity=8000)
    feed = Feed(player, audio, lambda: now)
    feed.attach(DeviceShape("card", 16000, 1, 0.03))
    back = 10.0 + stopped
    behind = 0.0
    for turn in range(round((back + 5.0) / 0.01)):
        now = 0.01 * turn
        if 10.0 <= now < back:
            continue
        while sequence * 0.02 <= now:
            feed.insert([Frame(sequence, b"\1\0" * 320, 320)], audio)
            sequence += 1
        if mode == "live" and feed.late(1.0):
            feed.skip()
        feed.pull(160, 0.03, False)
        behind = (sequence - (feed.next or 0)) * 0.02
    playout, _, left_out = feed.snapshot()
    if mode == "live":
        assert behind < 0.4
        assert left_out.played > stopped / 0.02 - 50
    else:
        assert behind == pytest.approx(stopped + 0.1, abs=0.2)
        assert left_out.played == playout.concealed == playout.skipped == 0


def test_a_flush_drops_what_is_not_on_its_way_to_the_device() -> None:
    audio, now = AudioFormat(), 0.0
    feed = Feed(Player(audio, drift=False), audio, lambda: now)
    feed.attach(DeviceShape("card", 16000, 1, 0.03))
    feed.insert([Frame(n, b"\0\x10" * 320, 320) for n in range(100)], audio)
    for _ in range(20):
        now += 0.02
        feed.pull(320, 0.03, False)
    feed.flush(110)
    assert feed.next == 110
    assert feed.buffered == 0
    now += 0.02
    feed.pull(640, 0.03, False)
    now += 0.02
    assert not any(feed.pull(320, 0.03, False)[0])
    feed.finish()
    assert feed.snapshot()[0].flushed > 70


async def test_the_first_failure_ends_the_others() -> None:
    ended = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    with pytest.raises(ZeroDivisionError):
        await together(waits(), fails())
    assert ended
    await together(asyncio.sleep(0), asyncio.sleep(0.01))
