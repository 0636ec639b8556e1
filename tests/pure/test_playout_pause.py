"""A pause of the source: to run out there is no fault of the path; then it begins anew."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tenuto.media import AudioFormat, Frame
from tenuto.playout import Block, JitterBuffer, Paused, Played, Player, PlayoutMode, Waiting

AUDIO = AudioFormat()
FADE_OUT, FADE_IN = 80, 48


def sound(sequence: int) -> NDArray[np.int16]:
    """That of a frame: no two are alike, and none is quiet at its edges."""
    places = np.arange(sequence * 320, sequence * 320 + 320)
    wave = 8000 * np.cos(2 * np.pi * 331.7 * places / AUDIO.rate)
    return np.asarray(np.rint(wave), np.int16)


def frame(sequence: int) -> Frame:
    return Frame(sequence, sound(sequence).astype("<i2").tobytes(), 320)


class Bed:
    """A player, its time, and what was heard of it."""

    def __init__(self, mode: PlayoutMode = "gapless", start: int | None = None) -> None:
        self.player = Player(AUDIO, mode=mode, drift=False, start=start)
        self.now = 5.0
        self.heard: list[Block] = []

    def come(self, first: int, end: int) -> None:
        for sequence in range(first, end):
            self.player.insert(frame(sequence), self.now)

    def turns(self, count: int) -> list[Block]:
        blocks = []
        for _ in range(count):
            block = self.player.read(self.now)
            self.now += block.duration
            blocks.append(block)
        self.heard += blocks
        return blocks

    def steadily(self, first: int, end: int) -> None:
        """Frames as they are spoken, and a turn for each of them."""
        for sequence in range(first, end):
            self.come(sequence, sequence + 1)
            self.turns(1)

    @property
    def faults(self) -> tuple[float, ...]:
        told = self.player.snapshot(self.now)
        return told.underruns, told.waited, told.concealed, told.skipped, told.concealed_samples

    def played(self) -> NDArray[np.int16]:
        return np.concatenate([each.samples[:, 0] for each in self.heard if each.kind == "played"])


def wanted(*runs: range) -> NDArray[np.int16]:
    return np.concatenate([sound(sequence) for run in runs for sequence in run])


@pytest.mark.parametrize("mode", ["gapless", "live"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_pause_in_mid_word_counts_nothing_and_costs_no_sample(
    mode: PlayoutMode, times: int
) -> None:
    bed = Bed(mode)
    bed.steadily(0, 30)
    for first in range(30, 30 + 30 * times, 30):
        before = bed.player.snapshot(bed.now)
        for _ in range(times):
            bed.player.pause(first)
        bed.turns(before.depth)
        tail, *rest = bed.turns(500)
        assert (tail.kind, len(tail.samples)) == ("concealed", FADE_OUT)
        values = tail.samples[:, 0].astype(int)
        assert abs(values[0] - int(sound(first - 1)[-1])) < 1500
        assert abs(values[-1]) < 200
        assert {block.kind for block in rest} == {"waiting"}
        assert not any(block.samples.any() for block in rest)
        resting = bed.player.snapshot(bed.now)
        assert (resting.state, resting.delay, resting.base) == ("filling", 0.0, None)
        bed.player.resume()
        bed.turns(3)
        bed.steadily(first, first + 30)
        after = bed.player.snapshot(bed.now)
        assert after.target <= before.target
        assert after.quantile == before.quantile
        assert after.delay == pytest.approx(before.delay, abs=0.08)
    bed.turns(5)
    assert bed.player.counters.underruns == 1  # at the very end, where nobody has paused
    if mode == "live":
        return  # It comes nearer to the present by shorter frames.
    played, sent = bed.played(), wanted(range(30 + 30 * times))
    assert len(played) == len(sent)
    for first in range(30, 30 + 30 * times, 30):
        rising = slice(first * 320, first * 320 + FADE_IN)
        assert abs(int(played[rising][0])) < 400
        assert (np.abs(played[rising]) <= np.abs(sent[rising])).all()
        played[rising] = sent[rising]
    assert (played == sent).all()


def test_a_pause_shorter_than_what_is_held_is_not_heard_and_no_jitter() -> None:
    bed = Bed()
    bed.come(0, 60)
    bed.turns(4)
    bed.steadily(60, 80)
    quantile = bed.player.snapshot(bed.now).quantile
    bed.player.pause(80)
    bed.turns(25)
    bed.player.resume()
    bed.steadily(80, 110)
    assert bed.player.snapshot(bed.now).quantile == quantile
    bed.turns(200)
    assert bed.faults[0] == 1
    assert (bed.played() == wanted(range(110))).all()


def test_what_is_late_after_the_source_went_on_is_an_underrun() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(30)
    bed.player.resume()
    bed.turns(20)
    underruns, waited, concealed, skipped, samples = bed.faults
    assert (underruns, concealed, skipped) == (1, 0, 0)
    assert waited > 0.2
    assert samples > 0


def test_frames_lost_before_a_pause_are_waited_for_as_any_others_and_no_longer() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(33)
    bed.turns(500)
    assert bed.faults == (1, pytest.approx(0.06), 0, 3, 3 * 320)
    assert bed.player.next == 33
    assert not bed.player.insert(frame(31), bed.now)
    assert bed.player.counters.late == 1
    bed.come(33, 60)
    bed.turns(60)
    assert bed.faults[2:4] == (0, 3)
    assert (bed.played()[30 * 320 + FADE_IN :] == wanted(range(33, 60))[FADE_IN:]).all()


def test_frames_that_are_told_of_before_they_are_here_are_all_heard() -> None:
    """The notice is told as soon as its bytes are read."""
    bed = Bed()
    bed.steadily(0, 30)
    bed.turns(6)
    assert bed.player.counters.underruns == 1
    bed.player.pause(40)
    bed.turns(1)
    bed.come(30, 40)
    bed.turns(200)
    assert (bed.played() == wanted(range(40))).all()
    assert bed.faults[:4] == (1, pytest.approx(0.02 * bed.player.counters.waited), 0, 0)
    assert bed.player.counters.waited < 10


def test_one_frame_before_a_pause_is_not_kept_back() -> None:
    """After a long wait what came may be all there is: here it is."""
    bed = Bed()
    bed.steadily(0, 30)
    bed.turns(20)
    bed.come(30, 31)
    bed.turns(10)
    assert bed.player.next == 30
    bed.player.pause(31)
    bed.turns(10)
    assert (bed.player.next, bed.player.counters.underruns) == (31, 1)


def test_a_live_source_may_have_gone_on_meanwhile() -> None:
    bed = Bed("live")
    bed.steadily(0, 30)
    bed.player.pause(30)
    bed.turns(50)
    bed.player.resume()
    target = bed.player.target
    bed.steadily(530, 560)
    assert bed.faults == (0, 0, 0, 500, 0)
    assert bed.player.delay(bed.now) == pytest.approx(target, abs=0.04)


@pytest.mark.parametrize("start", [None, 7])
def test_a_pause_before_the_first_frame(start: int | None) -> None:
    bed = Bed(start=start)
    bed.player.pause(7)
    bed.turns(100)
    bed.steadily(7, 40)
    bed.player.pause(40)
    bed.turns(20)
    assert bed.faults == (0, 0, 0, 0, 0)
    assert (bed.played() == wanted(range(7, 40))).all()


def test_a_pause_behind_the_first_frames_may_be_told_before_them() -> None:
    bed = Bed()
    bed.player.pause(9)
    bed.player.pause(10)
    bed.turns(3)
    bed.come(0, 10)
    bed.turns(100)
    assert bed.faults == (0, 0, 0, 0, 0)
    assert (bed.played() == wanted(range(10))).all()


def test_a_pause_that_is_over_before_the_first_frame() -> None:
    bed = Bed()
    bed.player.pause(10)
    bed.player.resume()
    bed.come(0, 10)
    bed.turns(100)
    assert bed.player.counters.underruns == 1


def test_a_flush_in_a_pause_does_not_end_it() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(30)
    bed.turns(20)
    bed.player.flush(50)
    bed.turns(100)
    assert (bed.player.next, bed.faults) == (50, (0, 0, 0, 0, 0))
    bed.player.resume()
    bed.steadily(50, 80)
    assert bed.faults == (0, 0, 0, 0, 0)


def test_the_end_may_come_in_a_pause() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(30)
    bed.player.finish(30)
    bed.player.pause(30)
    bed.turns(20)
    assert bed.heard[-1].ended
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(30)
    bed.turns(20)
    bed.player.finish(30)
    (block,) = bed.turns(1)
    assert block.ended
    assert bed.faults == (0, 0, 0, 0, 0)


def test_a_pause_that_is_told_too_late_changes_nothing() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.player.pause(20)
    bed.player.pause(29)
    bed.turns(20)
    assert bed.player.counters.underruns == 1


def test_a_pause_told_in_a_wait_ends_the_wait() -> None:
    bed = Bed()
    bed.steadily(0, 30)
    bed.turns(20)
    before = bed.faults
    bed.player.pause(30)
    bed.turns(100)
    assert bed.faults == before
    bed.come(30, 60)
    bed.turns(5)
    assert bed.player.snapshot(bed.now).state == "playing"


def test_of_the_buffer_alone() -> None:
    buffer = JitterBuffer(0)
    buffer.pause(2)
    assert buffer.pull(0.0) == Waiting()  # frames 0 and 1 may be on their way
    buffer.insert(frame(0), 0.0)
    buffer.insert(frame(1), 0.0)
    assert [buffer.pull(0.1 + 0.02 * turn) for turn in range(4)] == [
        Played(frame(0)), Played(frame(1)), Paused(), Paused()
    ]  # fmt: skip
    assert (buffer.filling, buffer.base, buffer.quantile) == (True, None, 0.005)
    buffer.insert(frame(2), 7.0)
    assert buffer.pull(7.0) == Waiting()
    assert buffer.pull(7.08) == Played(frame(2))
