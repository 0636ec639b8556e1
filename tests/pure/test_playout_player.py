"""Samples out: what was sent, where nothing was lost; no clicks, where something was."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tenuto.errors import RemoteProtocolError
from tenuto.media import AudioFormat, Frame
from tenuto.playout import Block, Player, PlayoutMode
from tenuto.playout.player import MAX_CHANGES
from tenuto.playout.scale import SpliceBudget, splice
from tests.support.voiced import largest_jump, sine, voiced

MONO = AudioFormat()


def cut(samples: NDArray[np.int16], audio: AudioFormat = MONO, first: int = 0) -> list[Frame]:
    """The sound as frames, the last one as short as it is."""
    size = audio.samples_per_frame
    return [
        Frame(first + n, samples[k : k + size].astype("<i2").tobytes(), len(samples[k : k + size]))
        for n, k in enumerate(range(0, len(samples), size))
    ]


def feed(player: Player, frames: Sequence[Frame], now: float = 0.0) -> None:
    for frame in frames:
        player.insert(frame, now)


def drain(player: Player, now: float, most: int = 10_000) -> list[Block]:
    """Every block until the end."""
    blocks: list[Block] = []
    for _ in range(most):
        block = player.read(now)
        now += block.duration
        if block.ended:
            return blocks
        blocks.append(block)
    raise AssertionError("it does not end")


def sound(blocks: Sequence[Block]) -> NDArray[np.int16]:
    return np.concatenate([block.samples for block in blocks])


@given(
    chunks=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    gaps=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=20),
    channels=st.sampled_from([1, 2]),
    last=st.integers(1, 320),
)
def test_without_drift_the_samples_are_those_that_were_sent(
    chunks: list[int], gaps: list[float], channels: int, last: int
) -> None:
    """Whatever the chunks are and whenever they come: waits stand between samples only."""
    audio = AudioFormat(16_000, channels)
    rng = np.random.default_rng(sum(chunks))
    sent = rng.integers(-32768, 32768, (sum(chunks) * 320 - 320 + last, channels), np.int16)
    frames = cut(sent, audio)
    player = Player(audio, drift=False)
    played = []
    arrival = now = 0.0
    for n, chunk in enumerate(chunks):
        arrival += gaps[n % len(gaps)]
        while now < arrival:
            block = player.read(now)
            now += block.duration
            played += [block] if block.kind == "played" else []
        feed(player, frames[:chunk], arrival)
        del frames[:chunk]
    player.finish(sum(chunks))
    rest = drain(player, now)
    assert {block.kind for block in rest} <= {"played", "waiting"}
    played += [block for block in rest if block.kind == "played"]
    assert (sound(played) == sent).all()
    assert player.counters.concealed == 0


def test_short_frames_have_their_true_length() -> None:
    player = Player(MONO)
    feed(player, cut(np.full((321, 1), 5, np.int16)))
    player.finish(2)
    assert [len(block.samples) for block in drain(player, 0.0)] == [320, 1]


def test_payloads_that_are_no_whole_samples_do_no_harm() -> None:
    player = Player(AudioFormat(16_000, 2))
    player.insert(Frame(0, b"abcdefg", 9), 0.0)
    player.insert(Frame(1, b"", 0), 0.0)
    player.finish(2)
    assert [block.samples.shape for block in drain(player, 0.0)] == [(1, 2), (0, 2)]


def test_nothing_came_at_all() -> None:
    player = Player(MONO)
    assert (player.next, player.buffered, player.target, player.delay(0.0)) == (None, 0, 0, 0)
    block = player.read(0.0)
    assert (block.kind, block.samples.any(), len(block.samples)) == ("waiting", False, 320)
    assert player.counters.received == 0
    assert player.snapshot(0.0).state == "filling"
    player.finish(0)
    assert player.read(0.02).ended
    assert player.snapshot(0.04).state == "ended"


def test_it_begins_where_it_is_told_or_with_the_first_that_comes() -> None:
    first = Player(MONO)
    first.insert(cut(sine(200, 0.02), first=7)[0], 0.0)
    assert first.next == 7
    told = Player(MONO, start=5)
    told.insert(cut(sine(200, 0.02), first=7)[0], 0.0)
    assert (told.next, told.buffered) == (5, pytest.approx(0.06))


class TestLoss:
    @pytest.mark.parametrize("lost", [1, 3, 10])
    def test_lost_frames_are_concealed_in_their_time(self, lost: int) -> None:
        sent = voiced(1, 1.0)
        player = Player(MONO)
        frames = cut(sent)
        feed(player, frames[:20] + frames[20 + lost :])
        player.finish(50)
        blocks = drain(player, 0.0)
        kinds = [block.kind for block in blocks]
        assert kinds == ["played"] * 20 + ["concealed"] * lost + ["played"] * (30 - lost)
        got = sound(blocks)
        assert len(got) == len(sent)
        assert (got[: 20 * 320] == sent[: 20 * 320]).all()
        # All but the first 5 ms of the frame after is whole again.
        assert (got[(20 + lost) * 320 + 80 :] == sent[(20 + lost) * 320 + 80 :]).all()
        assert largest_jump(got) <= 1.3 * largest_jump(sent)
        assert player.snapshot(1.0).concealed_samples == 320 * lost

    def test_an_empty_buffer_fades_and_what_comes_next_is_led_in(self) -> None:
        sent = voiced(2, 1.0)
        frames = cut(sent)
        player = Player(MONO)
        feed(player, frames[:10])
        now, blocks = 0.2, []
        while now < 0.6:
            blocks.append(player.read(now))
            now += blocks[-1].duration
        feed(player, frames[10:], now)
        player.finish(50)
        assert player.snapshot(now).state == "waiting"
        blocks += drain(player, now)
        got = sound(blocks)
        assert (got[:3200] == sent[:3200]).all()
        waits = [block for block in blocks if block.kind == "waiting"]
        assert not any(block.samples.any() for block in waits[3:-1])
        assert len(waits[-1].samples) == 80
        assert (got[-40 * 320 :] == sent[3200:]).all()
        assert largest_jump(got) <= 1.2 * largest_jump(sent)
        assert player.snapshot(now).waited == pytest.approx(0.2)

    def test_the_end_of_a_wait_is_not_cut_hard(self) -> None:
        sent = voiced(2, 0.2)
        player = Player(MONO)
        feed(player, cut(sent))
        blocks = [player.read(0.2 + n * 0.02) for n in range(11)]
        player.finish(10)
        blocks += drain(player, 0.42)
        assert [block.kind for block in blocks][10:] == ["waiting", "concealed"]
        assert abs(int(blocks[-1].samples[-1, 0])) < 200
        assert largest_jump(sound(blocks)) <= 1.2 * largest_jump(sent)


class TestFormats:
    def test_a_change_takes_effect_at_its_frame(self) -> None:
        new = AudioFormat(48_000, 2)
        player = Player(MONO)
        feed(player, cut(sine(200, 0.1)))
        feed(player, cut(np.repeat(sine(200, 0.1, 48_000), 2, axis=1), new, 5))
        player.change(5, new)
        player.finish(10)
        blocks = drain(player, 0.1)
        assert [block.audio for block in blocks] == [MONO] * 6 + [new] * 5
        assert [len(block.samples) for block in blocks] == [320] * 5 + [80] + [960] * 5
        assert abs(int(blocks[5].samples[-1, 0])) < 200
        assert largest_jump(sound(blocks[:6])) <= 1.1 * largest_jump(sine(200, 0.1))
        # 200 Hz at 48 kHz, rising over 3 ms.
        assert abs(int(blocks[6].samples[:48].max())) < 3000
        assert player.audio == new

    def test_a_silent_seam_is_left_alone(self) -> None:
        new = AudioFormat(8000)
        silence = np.zeros((1600, 1), np.int16)
        player = Player(MONO)
        feed(player, cut(silence))
        feed(player, cut(silence[:800], new, 5))
        player.change(5, new)
        player.change(7, new)
        player.finish(10)
        assert [len(block.samples) for block in drain(player, 0.1)] == [320] * 5 + [160] * 5

    def test_a_change_whose_frame_was_lost_waits_for_the_next(self) -> None:
        new = AudioFormat(8000)
        player = Player(MONO)
        feed(player, [*cut(sine(200, 0.1)), *cut(sine(200, 0.06, 8000), new, 6)])
        player.change(5, new)
        player.finish(9)
        kinds = [(block.kind, block.audio.rate) for block in drain(player, 0.1)]
        assert kinds[5:] == [
            ("concealed", 16_000), ("concealed", 16_000), *[("played", 8000)] * 3,
        ]  # fmt: skip

    def test_changes_ahead_are_bounded(self) -> None:
        player = Player(MONO)
        for n in range(MAX_CHANGES):
            player.change(1000 - n, AudioFormat(8000))
        player.change(1000, AudioFormat(48_000))
        with pytest.raises(RemoteProtocolError, match="more than 16 times"):
            player.change(5, MONO)


def spent(blocks: Sequence[Block], size: int = 320) -> list[tuple[int, int]]:
    """Where in the output samples were lost or gained, and how many."""
    places, place = [], 0
    for block in blocks:
        if block.kind == "played" and len(block.samples) != size:
            places.append((place, abs(len(block.samples) - size)))
        place += len(block.samples)
    return places


class TestScaling:
    @pytest.mark.parametrize(
        ("mode", "bound", "window"), [("live", 0.05, 16_000), ("gapless", 0.03, 32_000)]
    )
    def test_the_rate_is_bounded_over_any_stretch(
        self, mode: PlayoutMode, bound: float, window: int
    ) -> None:
        """Live with 2 s too much, which is far, and gapless with a clock that is 5 % wrong."""
        sent = voiced(4, 60.0)
        player = Player(MONO, mode=mode)
        frames = cut(sent)
        now, arrived, blocks = 2.0, 0, []
        while arrived < len(frames):
            while arrived < len(frames) and arrived * 0.02 <= now:
                player.insert(frames[arrived], arrived * 0.02)
                arrived += 1
            blocks.append(player.read(now))
            now += blocks[-1].duration * (1.0 if mode == "live" else 1.05)
        places = spent(blocks)
        assert len(places) > 50
        for place, _ in places:
            within = [size for other, size in places if place <= other < place + window]
            assert sum(within) <= bound * 16_000
        snapshot = player.snapshot(now)
        assert snapshot.shrunk_samples == sum(size for _, size in places)
        assert snapshot.stretched_samples == 0
        # Nearly all that is allowed is used, and none of it clicks.
        assert sum(size for _, size in places) > 0.6 * bound * 16_000 * now * 16_000 / window
        assert largest_jump(sound(blocks)) <= 1.3 * largest_jump(sent)

    def test_the_pitch_stays(self) -> None:
        sent = sine(200, 20.0)
        player = Player(MONO, mode="live")
        feed(player, cut(sent))
        blocks = [player.read(10.0 + n * 0.02) for n in range(500)]
        got = sound(blocks)[:, 0].astype(float)
        assert len(got) < 158_000
        spectrum = np.abs(np.fft.rfft(got * np.hanning(len(got))))
        assert np.argmax(spectrum) * 16_000 / len(got) == pytest.approx(200, abs=0.2)

    def test_drift_false_never_scales(self) -> None:
        sent = sine(200, 20.0)
        player = Player(MONO, drift=False)
        for n, frame in enumerate(cut(sent)):
            player.insert(frame, n * 0.02)
        blocks = [player.read(1.0 + n * 0.0202) for n in range(900)]
        assert {len(block.samples) for block in blocks} == {320}
        assert player.snapshot(20.0).stretched_samples == 0

    def test_noise_is_cut_only_where_it_is_far_off(self) -> None:
        rng = np.random.default_rng(1)
        noise = rng.normal(0, 3000, (640, 1)).astype(np.int16)
        before, frame = noise[:320], noise[320:]
        assert splice(before, frame, 16_000, 0.04, 400) is None
        assert splice(before, frame, 16_000, 0.09, 400) is None
        shorter = splice(before, frame, 16_000, 0.2, 400)
        longer = splice(before, frame, 16_000, -0.2, 400)
        assert shorter is not None
        assert longer is not None
        assert len(frame) - len(shorter) == len(longer) - len(frame) > 0

    def test_silence_is_cut_anywhere(self) -> None:
        quiet = np.full((320, 1), 10, np.int16)
        shorter = splice(quiet, quiet, 16_000, 0.012, 400)
        longer = splice(quiet, quiet, 16_000, -0.3, 400)
        assert shorter is not None
        assert longer is not None
        # 5 ms more than asked for at the most; the longest period; what the budget holds.
        assert (len(shorter), len(longer)) == (320 - 240, 320 + 240)
        within = splice(quiet, quiet, 16_000, 0.3, 100)
        assert within is not None
        assert len(within) == 220
        assert splice(quiet, quiet, 16_000, 0.3, 39) is None
        assert splice(quiet[:10], quiet, 16_000, 0.3, 400) is None

    def test_a_budget_is_that_of_any_window(self) -> None:
        budget = SpliceBudget(1000)
        budget.spend(60)
        assert budget.room(100) == 40
        assert budget.room(50) == 0
        budget.passed(999)
        budget.spend(40)
        assert budget.room(100) == 0
        budget.passed(1)
        assert budget.room(100) == 60


def test_a_snapshot_is_what_a_plot_needs() -> None:
    player = Player(MONO, mode="live")
    for n, frame in enumerate(cut(sine(200, 1.0))):
        player.insert(frame, 3.0 + n * 0.02 + (0.013 if n % 2 else 0.0))
        player.read(3.0 + n * 0.02)
    snapshot = player.snapshot(4.0, histogram=True)
    assert (snapshot.now, snapshot.mode, snapshot.state) == (4.0, "live", "playing")
    assert (snapshot.received, snapshot.base) == (50, 3.0)
    assert snapshot.quantile == 0.015
    assert 0.02 <= snapshot.target <= 0.08
    assert snapshot.delay == pytest.approx(0.08, abs=0.01)
    assert 0 < snapshot.depth <= 6
    assert snapshot.histogram is not None
    assert snapshot.histogram[2] == 1.0
    assert player.snapshot(4.0).histogram is None


VOICE = voiced(11, 12.0)


@given(
    seed=st.integers(0, 2**32),
    mode=st.sampled_from(["live", "gapless"]),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    hold=st.sampled_from([0.0, 0.03, 0.2]),
    lead=st.sampled_from([0.0, 0.2, 2.0]),
    sink=st.sampled_from([0.99, 1.0, 1.01]),
)
@settings(max_examples=40)
def test_nothing_clicks_whatever_the_path_does(
    seed: int, mode: PlayoutMode, loss: float, hold: float, lead: float, sink: float
) -> None:
    """Losses, bursts, reordering, copies and outages; no step larger than the voice's own."""
    rng = random.Random(seed)
    arrivals: list[tuple[float, Frame]] = []
    blocked = 0.0
    for frame in cut(VOICE):
        sent = max(frame.sequence * 0.002, frame.sequence * 0.02 - lead)
        if rng.random() < 0.005:
            blocked = sent + rng.uniform(0.05, 1.5)
        for _ in range(2 if rng.random() < 0.02 else 1):
            if rng.random() >= loss:
                arrivals.append((max(sent, blocked) + rng.uniform(0.0, hold), frame))
    arrivals.sort(key=lambda arrival: arrival[0])
    player = Player(MONO, mode=mode, start=0)
    blocks: list[Block] = []
    now = 0.0
    while not blocks or not blocks[-1].ended:
        while arrivals and arrivals[0][0] <= now:
            at, frame = arrivals.pop(0)
            player.insert(frame, at)
        if not arrivals:
            player.finish(600)
        blocks.append(player.read(now))
        now += blocks[-1].duration / sink
        assert len(blocks[-1].samples) <= 320 + 240
    first = next(n for n, block in enumerate(blocks) if block.samples.any())
    assert largest_jump(sound(blocks[first:])) <= 1.35 * largest_jump(VOICE)
    counters = player.counters
    assert counters.played + counters.concealed + counters.skipped == 600
    snapshot = player.snapshot(now)
    total = sum(len(block.samples) for block in blocks if block.kind == "played")
    scaled = snapshot.stretched_samples - snapshot.shrunk_samples
    assert total == 320 * counters.played + scaled
