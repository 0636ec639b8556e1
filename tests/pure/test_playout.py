import random
from dataclasses import asdict
from itertools import accumulate

import pytest

from tenuto.media import Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Outcome, Played, Waiting


def frame(sequence: int, samples: int = 1) -> Frame:
    return Frame(sequence, b"ab" * samples, samples)


def filled(*sequences: int, start: int = 0, target: float = 0.08) -> JitterBuffer:
    buffer = JitterBuffer(start, target=target)
    for sequence in sequences:
        buffer.insert(frame(sequence))
    return buffer


def pull(buffer: JitterBuffer, count: int) -> list[int | str]:
    """Outcomes in short: a sequence, "-1" for frame 1 concealed, "" and "." for the rest."""
    words: list[int | str] = []
    for _ in range(count):
        match buffer.pull():
            case Played(frame=frame):
                words.append(frame.sequence)
            case Concealed(sequence=sequence):
                words.append(f"-{sequence}")
            case Waiting():
                words.append("")
            case Ended():
                words.append(".")
    return words


def counts(buffer: JitterBuffer) -> dict[str, int]:
    return {name: count for name, count in asdict(buffer.counters).items() if count}


class TestBeginning:
    def test_waits_for_its_target(self) -> None:
        buffer = filled(0, 1, 2)
        assert pull(buffer, 2) == ["", ""]
        assert buffer.depth == 3
        buffer.insert(frame(3))
        assert pull(buffer, 4) == [0, 1, 2, 3]
        assert counts(buffer) == {"received": 4, "played": 4}

    def test_the_target_is_80_ms_unless_told_otherwise(self) -> None:
        buffer = JitterBuffer(0)
        for sequence in range(3):
            buffer.insert(frame(sequence))
        assert buffer.pull() == Waiting()
        buffer.insert(frame(3))
        assert buffer.pull() == Played(frame(0))

    @pytest.mark.parametrize(("target", "frames"), [(0.0, 1), (0.02, 1), (0.04, 2), (0.2, 10)])
    def test_targets_are_whole_frames_and_at_least_one(self, target: float, frames: int) -> None:
        buffer = JitterBuffer(0, target=target)
        for sequence in range(frames):
            assert buffer.pull() == Waiting()
            buffer.insert(frame(sequence))
        assert buffer.pull() == Played(frame(0))

    def test_a_target_beyond_the_capacity_is_the_capacity(self) -> None:
        buffer = JitterBuffer(0, target=0.2, capacity=2)
        buffer.insert(frame(0))
        assert buffer.pull() == Waiting()
        buffer.insert(frame(1))
        assert pull(buffer, 2) == [0, 1]

    def test_end_before_the_prefill_is_full(self) -> None:
        buffer = filled(0, 1)
        assert pull(buffer, 1) == [""]
        buffer.finish(2)
        assert pull(buffer, 4) == [0, 1, ".", "."]
        assert counts(buffer) == {"received": 2, "played": 2}

    def test_an_absurd_end_is_concealed_no_further_than_the_capacity(self) -> None:
        buffer = JitterBuffer(0, capacity=5)
        buffer.insert(frame(0))
        buffer.finish(1 << 60)
        outcomes = pull(buffer, 10)
        assert outcomes[0] == 0
        assert outcomes[-1] == "."
        assert counts(buffer)["concealed"] == 5

    def test_an_empty_session(self) -> None:
        buffer = JitterBuffer(65_536)
        buffer.finish(65_536)
        assert pull(buffer, 2) == [".", "."]
        assert counts(buffer) == {}

    def test_a_session_of_one_short_frame(self) -> None:
        buffer = JitterBuffer(7)
        buffer.insert(frame(7, samples=3))
        buffer.finish(8)
        assert buffer.pull() == Played(frame(7, samples=3))
        assert buffer.pull() == Ended()

    def test_the_missing_first_frame_is_concealed(self) -> None:
        buffer = filled(1, 2, 3)
        assert buffer.depth == 4
        assert pull(buffer, 4) == ["-0", 1, 2, 3]


class TestLoss:
    @pytest.mark.parametrize("lost", [1, 10, 100])
    def test_each_lost_frame_is_concealed_in_its_place(self, lost: int) -> None:
        buffer = filled(*range(5), *range(5 + lost, 10 + lost))
        expected = [*range(5), *(f"-{n}" for n in range(5, 5 + lost)), *range(5 + lost, 10 + lost)]
        assert pull(buffer, 10 + lost) == expected
        assert counts(buffer) == {"received": 10, "played": 10, "concealed": lost}

    def test_a_late_frame_is_not_played(self) -> None:
        buffer = filled(0, 1, 2, 4, 5)
        assert pull(buffer, 4) == [0, 1, 2, "-3"]
        assert buffer.insert(frame(3)) is False
        assert pull(buffer, 2) == [4, 5]
        assert counts(buffer) == {"received": 6, "played": 5, "late": 1, "concealed": 1}

    def test_the_copy_of_a_late_frame_is_a_duplicate(self) -> None:
        buffer = filled(1, 2, 3)
        assert pull(buffer, 1) == ["-0"]
        assert [buffer.insert(frame(0)) for _ in range(3)] == [False] * 3
        assert counts(buffer) == {"received": 6, "concealed": 1, "late": 1, "duplicates": 2}

    def test_the_last_256_concealed_places_are_remembered(self) -> None:
        buffer = filled(257, target=0.02)
        assert pull(buffer, 257)[-1] == "-256"
        assert [buffer.insert(frame(sequence)) for sequence in (0, 1, 256)] == [False] * 3
        assert (buffer.counters.duplicates, buffer.counters.late) == (1, 2)

    def test_a_tail_that_never_came_is_concealed_before_the_end(self) -> None:
        buffer = filled(0, 1, 2, 3)
        buffer.finish(6)
        assert pull(buffer, 7) == [0, 1, 2, 3, "-4", "-5", "."]
        assert counts(buffer) == {"received": 4, "played": 4, "concealed": 2}

    @pytest.mark.parametrize("distance", [1, 2, 3])
    def test_reordering_within_the_target_costs_nothing(self, distance: int) -> None:
        buffer = JitterBuffer(0)
        order = sorted(range(100), key=lambda n: n + (distance + 0.5 if n % 7 == 0 else 0))
        played: list[int | str] = []
        for sequence in order[:4]:
            buffer.insert(frame(sequence))
        for sequence in order[4:]:
            played += pull(buffer, 1)
            buffer.insert(frame(sequence))
        buffer.finish(100)
        assert played + pull(buffer, 4) == list(range(100))
        assert counts(buffer) == {"received": 100, "played": 100}


def play(arrivals: list[float], target: float) -> JitterBuffer:
    """Let frame n arrive at `arrivals[n]` and a sink pull every 20 ms until the end."""
    buffer = JitterBuffer(0, target=target)
    queue = sorted(enumerate(arrivals), key=lambda item: item[1])
    place = tick = 0
    while buffer.pull() != Ended():
        tick += 1
        while place < len(queue) and queue[place][1] <= tick * 0.02:
            buffer.insert(frame(queue[place][0]))
            place += 1
        if place == len(queue):
            buffer.finish(len(arrivals))
    return buffer


class TestJitter:
    def test_ten_minutes_of_30_ms_jitter_cost_nothing(self) -> None:
        rng = random.Random(33)
        arrivals = [n * 0.02 + rng.uniform(0.0, 0.03) for n in range(30_000)]
        assert counts(play(arrivals, 0.08)) == {"received": 30_000, "played": 30_000}

    def test_bursts_within_the_target(self) -> None:
        arrivals = [(n // 10 + 1) * 0.2 for n in range(1000)]
        assert counts(play(arrivals, 0.22)) == {"received": 1000, "played": 1000}

    def test_one_burst_that_is_late_is_one_underrun_and_nothing_is_lost(self) -> None:
        arrivals = [(n // 10 + 1) * 0.2 + (0.5 if n // 10 == 40 else 0.0) for n in range(1000)]
        ordered = list(accumulate(arrivals, max))
        expected = {"received": 1000, "played": 1000, "underruns": 1}
        assert counts(play(ordered, 0.22)) == expected


class TestUnderrun:
    def test_an_episode_is_counted_once_and_followed_by_filling(self) -> None:
        buffer = filled(0, 1, 2, 3)
        assert pull(buffer, 8) == [0, 1, 2, 3, "", "", "", ""]
        assert buffer.counters.underruns == 1
        assert buffer.depth == 0
        for sequence in (4, 5, 6):
            assert buffer.insert(frame(sequence))
            assert pull(buffer, 1) == [""]
        buffer.insert(frame(7))
        assert pull(buffer, 5) == [4, 5, 6, 7, ""]
        assert counts(buffer) == {"received": 8, "played": 8, "underruns": 2}

    def test_the_frame_that_was_missing_is_still_in_time(self) -> None:
        buffer = filled(0, target=0.02)
        assert pull(buffer, 2) == [0, ""]
        assert buffer.insert(frame(1)) is True
        assert pull(buffer, 1) == [1]

    def test_the_end_ends_an_episode(self) -> None:
        buffer = filled(0, 1, 2, 3)
        assert pull(buffer, 5) == [0, 1, 2, 3, ""]
        buffer.finish(5)
        assert pull(buffer, 2) == ["-4", "."]
        assert buffer.counters.underruns == 1

    def test_waiting_to_begin_is_no_underrun(self) -> None:
        buffer = JitterBuffer(0)
        assert pull(buffer, 50) == [""] * 50
        assert counts(buffer) == {}


class TestBounds:
    def test_filled_to_the_brim_it_keeps_what_plays_first(self) -> None:
        buffer = JitterBuffer(100, capacity=8)
        accepted = [buffer.insert(frame(sequence)) for sequence in range(100, 112)]
        assert accepted == [True] * 8 + [False] * 4
        assert buffer.depth == 8
        assert buffer.counters.overflowed == 4
        assert pull(buffer, 1) == [100]
        assert buffer.insert(frame(108)) is True
        assert buffer.insert(frame(109)) is False
        assert pull(buffer, 8) == list(range(101, 109))

    def test_2048_frames_unless_told_otherwise(self) -> None:
        buffer = JitterBuffer(0)
        assert buffer.insert(frame(2047)) is True
        assert buffer.insert(frame(2048)) is False

    def test_a_frame_far_ahead_is_refused(self) -> None:
        buffer = filled(0, 1, 2, 3)
        assert buffer.insert(frame(2**62)) is False
        assert buffer.depth == 4

    def test_duplicates_are_dropped_held_or_played_or_before_the_start(self) -> None:
        buffer = filled(10, 11, 12, 13, start=10)
        assert buffer.insert(Frame(11, b"other", 1)) is False
        assert buffer.insert(frame(9)) is False
        assert buffer.pull() == Played(frame(10))
        assert buffer.insert(frame(10)) is False
        assert buffer.pull() == Played(frame(11))
        assert counts(buffer) == {"received": 7, "played": 2, "duplicates": 3}

    def test_depth_counts_from_the_next_to_play(self) -> None:
        buffer = filled(2, 7, 4)
        assert buffer.depth == 8
        pull(buffer, 3)
        assert buffer.depth == 5
        assert JitterBuffer(5).depth == 0


def test_outcomes_are_values() -> None:
    outcomes: list[Outcome] = [Played(frame(1)), Concealed(2), Waiting(), Ended()]
    assert outcomes == [Played(frame(1)), Concealed(2), Waiting(), Ended()]
