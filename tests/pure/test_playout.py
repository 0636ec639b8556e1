"""What the jitter buffer decides, in virtual time."""

import random
from collections.abc import Iterable
from dataclasses import asdict
from itertools import accumulate

import pytest

from tenuto.media import Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Outcome, Played, Waiting


def frame(sequence: int, samples: int = 1) -> Frame:
    return Frame(sequence, b"ab" * samples, samples)


class Sink:
    """A buffer, and a clock that each pull moves on by 20 ms."""

    def __init__(self, start: int = 0, capacity: int = 2048, now: float = 0.0) -> None:
        self.buffer = JitterBuffer(start, capacity=capacity)
        self.now = now

    def insert(self, *sequences: int) -> list[bool]:
        return [self.buffer.insert(frame(sequence), self.now) for sequence in sequences]

    def pull(self, count: int) -> list[int | str]:
        """Outcomes in short: a sequence, "-1" for frame 1 concealed, "" and "." for the rest.

        Skipped frames stand as "/2" before what follows them.
        """
        words: list[int | str] = []
        for _ in range(count):
            outcome = self.buffer.pull(self.now)
            self.now += 0.02
            if isinstance(outcome, Played | Concealed) and outcome.skipped:
                words.append(f"/{outcome.skipped}")
            match outcome:
                case Played(frame=frame):
                    words.append(frame.sequence)
                case Concealed(sequence=sequence):
                    words.append(f"-{sequence}")
                case Waiting():
                    words.append("")
                case Ended():
                    words.append(".")
        return words

    def counts(self) -> dict[str, int]:
        return {name: n for name, n in asdict(self.buffer.counters).items() if n}


def holding(*sequences: int, start: int = 0, capacity: int = 2048) -> Sink:
    """A sink whose buffer holds these frames, long enough for them to be played."""
    sink = Sink(start, capacity)
    sink.insert(*sequences)
    sink.now += 0.1
    return sink


class TestBeginning:
    def test_waits_until_the_first_frame_would_be_80_ms_old(self) -> None:
        sink = Sink()
        sink.insert(0)
        for sequence in range(1, 5):
            assert sink.pull(1) == [""]
            sink.insert(sequence)
        assert sink.buffer.depth == 5
        assert sink.pull(2) == [0, 1]
        assert sink.counts() == {"received": 5, "played": 2}

    def test_the_target_is_80_ms_at_first(self) -> None:
        buffer = JitterBuffer(0)
        assert (buffer.target, buffer.quantile, buffer.base) == (0.08, 0.0, None)
        buffer.insert(frame(0), 5.0)
        assert buffer.pull(5.079999) == Waiting()
        assert buffer.pull(5.08) == Played(frame(0))

    def test_what_comes_faster_than_real_time_begins_sooner(self) -> None:
        """A lead of 2 s, built at ten times real time."""
        buffer = JitterBuffer(0)
        for sequence in range(5):
            buffer.insert(frame(sequence), sequence * 0.002)
        assert buffer.delay(0.008) == pytest.approx(0.08)
        assert buffer.pull(0.008) == Played(frame(0))

    def test_end_before_it_is_time(self) -> None:
        sink = Sink()
        sink.insert(0, 1)
        assert sink.pull(1) == [""]
        sink.buffer.finish(2)
        assert sink.pull(4) == [0, 1, ".", "."]
        assert sink.counts() == {"received": 2, "played": 2}

    def test_an_absurd_end_is_concealed_no_further_than_the_capacity(self) -> None:
        sink = Sink(capacity=5)
        sink.insert(0)
        sink.buffer.finish(1 << 60)
        outcomes = sink.pull(10)
        assert (outcomes[0], outcomes[-1]) == (0, ".")
        assert sink.counts()["concealed"] == 5

    def test_an_empty_session(self) -> None:
        sink = Sink(65_536)
        sink.buffer.finish(65_536)
        assert sink.pull(2) == [".", "."]
        assert sink.counts() == {}

    def test_a_session_of_one_short_frame(self) -> None:
        buffer = JitterBuffer(7)
        buffer.insert(frame(7, samples=3), 0.0)
        buffer.finish(8)
        assert buffer.pull(0.0) == Played(frame(7, samples=3))
        assert buffer.pull(0.02) == Ended()

    def test_the_missing_first_frame_is_concealed(self) -> None:
        sink = holding(1, 2, 3)
        assert sink.buffer.depth == 4
        assert sink.pull(4) == ["-0", 1, 2, 3]

    def test_nothing_is_said_of_a_buffer_that_got_nothing(self) -> None:
        buffer = JitterBuffer(0)
        assert (buffer.delay(3.0), buffer.excess(3.0)) == (0.0, 0.0)
        assert buffer.filling


class TestLoss:
    @pytest.mark.parametrize("lost", [1, 10, 100])
    def test_each_lost_frame_is_concealed_in_its_place(self, lost: int) -> None:
        sink = holding(*range(5), *range(5 + lost, 10 + lost))
        expected = [*range(5), *(f"-{n}" for n in range(5, 5 + lost)), *range(5 + lost, 10 + lost)]
        assert sink.pull(10 + lost) == expected
        assert sink.counts() == {"received": 10, "played": 10, "concealed": lost}

    def test_a_late_frame_is_not_played(self) -> None:
        sink = holding(0, 1, 2, 4, 5)
        assert sink.pull(4) == [0, 1, 2, "-3"]
        assert sink.insert(3) == [False]
        assert sink.pull(2) == [4, 5]
        assert sink.counts() == {"received": 6, "played": 5, "late": 1, "concealed": 1}

    def test_the_copy_of_a_late_frame_is_a_duplicate(self) -> None:
        sink = holding(1, 2, 3)
        assert sink.pull(1) == ["-0"]
        assert sink.insert(0, 0, 0) == [False] * 3
        assert sink.counts() == {"received": 6, "concealed": 1, "late": 1, "duplicates": 2}

    def test_the_last_256_places_given_up_are_remembered(self) -> None:
        sink = holding(257)
        assert sink.pull(257)[-1] == "-256"
        assert sink.insert(0, 1, 256) == [False] * 3
        assert (sink.buffer.counters.duplicates, sink.buffer.counters.late) == (1, 2)

    def test_a_late_frame_raises_the_target(self) -> None:
        sink = holding(0, 1, 2, 4, 5)
        sink.pull(4)
        before = sink.buffer.target
        sink.now += 0.2
        sink.insert(3)
        assert before == 0.08
        assert sink.buffer.target < before
        # It may be that all is late from now on; one that is not says that it was jitter.
        sink.insert(24)
        assert sink.buffer.target == pytest.approx(0.425)

    def test_a_tail_that_never_came_is_concealed_before_the_end(self) -> None:
        sink = holding(0, 1, 2, 3)
        sink.buffer.finish(6)
        assert sink.pull(7) == [0, 1, 2, 3, "-4", "-5", "."]
        assert sink.counts() == {"received": 4, "played": 4, "concealed": 2}

    @pytest.mark.parametrize("distance", range(1, 21))
    def test_reordering_within_the_delay_costs_nothing(self, distance: int) -> None:
        """Frame 7n comes after the `distance` frames that follow it, all else in time."""
        order = sorted(range(210), key=lambda n: n + (distance + 0.5 if n % 7 == 0 else 0))
        arrivals = [(place * 0.02, sequence) for place, sequence in enumerate(order)]
        buffer = JitterBuffer(0)
        outcomes = run(buffer, arrivals, delay=(distance + 1) * 0.02)
        assert outcomes == [Played(frame(n)) for n in range(210)]

    @pytest.mark.parametrize("distance", [5, 12, 20])
    def test_reordering_beyond_it_is_learnt(self, distance: int) -> None:
        order = sorted(range(2100), key=lambda n: n + (distance + 0.5 if n % 7 == 0 else 0))
        arrivals = [(place * 0.02, sequence) for place, sequence in enumerate(order)]
        buffer = JitterBuffer(0)
        run(buffer, arrivals)
        # The held-back frame is `distance` frame times late, the others lie one early.
        assert buffer.target == pytest.approx((distance + 1) * 0.02 + 0.005, abs=0.0051)
        assert buffer.counters.late == buffer.counters.concealed


def run(
    buffer: JitterBuffer, arrivals: Iterable[tuple[float, int]], delay: float = 0.0
) -> list[Outcome]:
    """Let the frames arrive and a sink pull every 20 ms until the end; waiting is left out."""
    queue = sorted(arrivals)
    outcomes: list[Outcome] = []
    place, tick = 0, round(delay / 0.02)
    while True:
        while place < len(queue) and queue[place][0] <= tick * 0.02 + 1e-9:
            buffer.insert(frame(queue[place][1]), queue[place][0])
            place += 1
        if place == len(queue):
            buffer.finish(max(sequence for _, sequence in queue) + 1)
        outcome = buffer.pull(tick * 0.02)
        tick += 1
        if outcome == Ended():
            return outcomes
        if outcome != Waiting():
            outcomes.append(outcome)


def play(times: list[float]) -> Sink:
    """Frame n arrives at `times[n]`."""
    sink = Sink()
    run(sink.buffer, [(time, n) for n, time in enumerate(times)])
    return sink


class TestJitter:
    def test_ten_minutes_of_30_ms_jitter_cost_nothing(self) -> None:
        rng = random.Random(33)
        sink = play([n * 0.02 + rng.uniform(0.0, 0.03) for n in range(30_000)])
        assert sink.counts() == {"received": 30_000, "played": 30_000}
        assert sink.buffer.target == pytest.approx(0.03)

    def test_bursts_every_200_ms_cost_one_underrun_at_most(self) -> None:
        sink = play([(n // 10 + 1) * 0.2 for n in range(1000)])
        counts = sink.counts()
        assert counts.pop("underruns", 0) <= 1
        assert counts.pop("waited", 0) <= 1
        assert counts == {"received": 1000, "played": 1000}

    def test_one_burst_that_is_late_is_one_underrun_and_nothing_is_lost(self) -> None:
        times = [(n // 10 + 1) * 0.2 + (0.5 if n // 10 == 40 else 0.0) for n in range(1000)]
        sink = play(list(accumulate(times, max)))
        counts = sink.counts()
        assert 24 <= counts.pop("waited") <= 26
        assert counts.pop("underruns") <= 2
        assert counts == {"received": 1000, "played": 1000}


class TestUnderrun:
    def test_an_episode_is_counted_once_and_nothing_is_skipped(self) -> None:
        sink = holding(0, 1, 2, 3)
        assert sink.pull(8) == [0, 1, 2, 3, "", "", "", ""]
        assert sink.buffer.depth == 0
        assert sink.counts() == {"received": 4, "played": 4, "underruns": 1, "waited": 4}
        sink.insert(4, 5)
        # They are 240 ms late by the base, and so may be all that follow: that is no jitter.
        assert sink.buffer.delay(sink.now) == 0.24
        assert sink.buffer.target == pytest.approx(0.0735)
        assert sink.pull(4) == [4, 5, "", ""]
        assert sink.buffer.counters.underruns == 2

    def test_it_waits_for_the_target_again(self) -> None:
        """After a pause that re-anchors the base, nobody knows better than to buffer anew."""
        sink = holding(0, 1, 2, 3)
        sink.pull(5)
        sink.now = 5.0
        sink.insert(4)
        assert sink.buffer.delay(5.0) == 0.0
        assert sink.buffer.target == 0.015
        assert sink.pull(2) == ["", 4]

    def test_the_frame_that_was_missing_is_still_in_time(self) -> None:
        sink = holding(0)
        assert sink.pull(2) == [0, ""]
        assert sink.insert(1) == [True]
        sink.now += 0.005
        assert sink.pull(1) == [1]

    @pytest.mark.parametrize("lost", [1, 2, 3])
    def test_a_frame_that_was_lost_is_paid_for_once(self, lost: int) -> None:
        """The wait stood for it: once later frames are there, it is not concealed as well."""
        sink = holding(0)
        before = sink.buffer.delay(sink.now)
        assert sink.pull(1 + lost) == [0, *[""] * lost]
        sink.insert(1 + lost)
        assert sink.pull(1) == [f"/{lost}", 1 + lost]
        assert sink.buffer.delay(sink.now) == pytest.approx(before)
        assert sink.counts() == {
            "received": 2, "played": 2, "skipped": lost, "underruns": 1, "waited": lost,
        }  # fmt: skip

    def test_what_the_wait_did_not_pay_for_is_concealed(self) -> None:
        sink = holding(0)
        assert sink.pull(2) == [0, ""]
        sink.insert(4)
        assert sink.pull(3) == ["/1", "-2", "-3", 4]

    def test_a_skipped_frame_that_comes_is_late(self) -> None:
        sink = holding(0)
        sink.pull(2)
        sink.insert(2)
        assert sink.pull(1) == ["/1", 2]
        assert sink.insert(1) == [False]
        assert sink.buffer.counters.late == 1

    def test_the_end_ends_an_episode(self) -> None:
        sink = holding(0, 1, 2, 3)
        assert sink.pull(5) == [0, 1, 2, 3, ""]
        sink.buffer.finish(5)
        assert sink.pull(2) == ["-4", "."]
        assert sink.buffer.counters.underruns == 1

    def test_nothing_is_skipped_beyond_the_end(self) -> None:
        sink = holding(0)
        sink.pull(4)
        sink.insert(3)
        sink.buffer.finish(2)
        # The peer contradicts itself: frame 3 cannot be when the session ended at 2.
        assert sink.pull(2) == [".", "."]
        assert sink.buffer.counters.skipped == 1

    def test_waiting_to_begin_is_no_underrun(self) -> None:
        sink = Sink()
        assert sink.pull(50) == [""] * 50
        assert sink.counts() == {}


class TestBounds:
    def test_a_hole_that_no_buffer_can_hold_is_left_out(self) -> None:
        """Whoever waited for its frames would be silent for ever."""
        sink = holding(0, 1, capacity=8)
        assert sink.pull(3) == [0, 1, ""]
        assert sink.insert(5000, 5001) == [True, True]
        assert sink.buffer.counters.skipped == 4998
        assert (sink.buffer.next, sink.buffer.depth) == (5000, 2)
        sink.now += 0.1
        assert sink.pull(3) == [5000, 5001, ""]
        assert sink.insert(2) == [False]
        assert sink.buffer.counters.duplicates == 1
        sink.buffer.finish(5002)
        assert sink.insert(9000) == [False]
        assert sink.buffer.counters.overflowed == 1

    def test_a_hole_longer_than_a_day_is_a_lie(self) -> None:
        sink = holding(0)
        assert sink.pull(2) == [0, ""]
        assert sink.insert(4_320_002, 1 << 50, 1) == [False, False, True]
        sink.now += 0.1
        assert sink.pull(2) == [1, ""]
        assert sink.insert(4_320_003, 4_320_002) == [False, True]

    def test_filled_to_the_brim_it_keeps_what_plays_first(self) -> None:
        sink = Sink(100, capacity=8)
        assert sink.insert(*range(100, 112)) == [True] * 8 + [False] * 4
        assert sink.buffer.depth == 8
        assert sink.buffer.counters.overflowed == 4
        sink.now += 0.1
        assert sink.pull(1) == [100]
        assert sink.insert(108, 109) == [True, False]
        assert sink.pull(8) == list(range(101, 109))

    def test_2048_frames_unless_told_otherwise(self) -> None:
        assert Sink().insert(2047, 2048) == [True, False]

    def test_a_frame_far_ahead_is_refused_and_moves_no_base(self) -> None:
        sink = Sink()
        sink.insert(0)
        assert sink.insert(2**62) == [False]
        assert (sink.buffer.depth, sink.buffer.base) == (1, 0.0)

    def test_duplicates_are_dropped_held_or_played_or_before_the_start(self) -> None:
        sink = holding(10, 11, 12, 13, start=10)
        assert sink.buffer.insert(Frame(11, b"other", 1), sink.now) is False
        assert sink.insert(9) == [False]
        assert sink.pull(1) == [10]
        assert sink.insert(10) == [False]
        assert sink.buffer.pull(sink.now) == Played(frame(11))
        assert sink.counts() == {"received": 7, "played": 2, "duplicates": 3}

    def test_duplicates_tell_nothing_of_delays(self) -> None:
        sink = Sink()
        sink.insert(0)
        sink.now += 0.9
        sink.insert(0, 0, 0)
        assert sink.buffer.target == 0.08

    def test_depth_counts_from_the_next_to_play(self) -> None:
        sink = holding(2, 7, 4)
        assert sink.buffer.depth == 8
        sink.pull(3)
        assert (sink.buffer.depth, sink.buffer.next) == (5, 3)
        assert JitterBuffer(5).depth == 0

    def test_sequences_of_64_bits_lose_no_precision(self) -> None:
        start = 2**63
        buffer = JitterBuffer(start)
        now = 1e6
        for n in range(100):
            buffer.insert(frame(start + n), now + n * 0.02)
        assert buffer.quantile == 0.005
        assert buffer.delay(now + 0.06) == 0.06

    def test_a_clock_that_steps_back_is_held(self) -> None:
        buffer = JitterBuffer(0)
        buffer.insert(frame(0), 1.0)
        buffer.insert(frame(1), 0.5)
        assert buffer.base == 0.98


def test_outcomes_are_values() -> None:
    outcomes: list[Outcome] = [Played(frame(1)), Concealed(2), Waiting(), Ended()]
    assert outcomes == [Played(frame(1), 0), Concealed(2, 0), Waiting(), Ended()]
