"""A flush: what is held is dropped, what sounds ends softly, what follows begins anew."""

from __future__ import annotations

import numpy as np
import pytest

from tenuto.media import AudioFormat, Frame
from tenuto.playout import JitterBuffer, Player

AUDIO = AudioFormat()
STEREO = AudioFormat(48000, 2)


def frame(sequence: int, value: int, audio: AudioFormat = AUDIO) -> Frame:
    count = audio.samples_per_frame * audio.channels
    return Frame(sequence, np.full(count, value, "<i2").tobytes(), audio.samples_per_frame)


def playing(count: int = 50, value: int = 8000) -> tuple[Player, float]:
    """A player in mid-sound, and its time."""
    player = Player(AUDIO, drift=False)
    for n in range(count):
        player.insert(frame(n, value), 0.0)
    now = 0.0
    for _ in range(10):
        now += 0.02
        player.read(now)
    assert player.read(now).kind == "played"
    return player, now


def test_what_is_held_is_never_heard_and_nothing_clicks() -> None:
    player, now = playing()
    before = player.next
    assert before is not None
    player.flush(60)
    assert (player.next, player.buffered) == (60, 0)
    tail = player.read(now)
    assert (tail.kind, len(tail.samples)) == ("concealed", 80)
    values = tail.samples[:, 0].astype(int)
    assert abs(values[0] - 8000) < 200
    assert abs(values[-1]) < 200
    assert max(abs(np.diff(values))) < 200
    assert not player.read(now).samples.any()
    snapshot = player.snapshot(now)
    assert (snapshot.flushed, snapshot.state) == (50 - before, "filling")
    assert snapshot.played == before


def test_the_new_sound_begins_like_the_first_one() -> None:
    player, now = playing()
    player.flush(60)
    assert not player.insert(frame(49, 1), now)  # an old one, still on its way
    for n in range(60, 80):
        assert player.insert(frame(n, -8000), now)
    heard = []
    for _ in range(40):
        now += 0.02
        heard.append(player.read(now))
    played = [block for block in heard if block.kind == "played"]
    assert len(played) == 20
    first = played[0].samples[:, 0].astype(int)
    assert abs(first[0]) < 300
    assert first[-1] == -8000
    assert player.counters.waited == 19  # of 40 turns, behind a fade and 20 frames
    assert player.counters.underruns == 1  # at its end, and not at the flush
    assert (played[1].samples == -8000).all()


def test_a_format_that_was_to_come_is_that_of_the_new_sound() -> None:
    player, now = playing()
    player.change(30, STEREO)
    player.change(70, AUDIO)
    player.flush(60)
    for n in range(60, 80):
        player.insert(frame(n, 5, STEREO if n < 70 else AUDIO), now)
    formats = []
    for _ in range(60):
        now += 0.02
        block = player.read(now)
        if block.kind == "played":
            formats.append(block.audio)
    assert formats == [STEREO] * 10 + [AUDIO] * 10


def test_a_flush_in_a_seam_fades_what_was_still_to_sound() -> None:
    """The block behind the seam counts as heard already, but is not."""
    player = Player(AUDIO, drift=False)
    for n in range(10):
        player.insert(frame(n, 8000), 0.0)
    player.change(10, STEREO)
    player.insert(frame(10, 4000, STEREO), 0.0)
    now = 0.0
    block = player.read(now)
    while block.kind != "concealed":
        now += 0.02
        block = player.read(now)
    player.flush(60)
    tail = player.read(now)
    assert (tail.kind, tail.audio, len(tail.samples)) == ("concealed", STEREO, 240)
    values = tail.samples[:, 0].astype(int)
    assert abs(values[-1]) < 100
    assert (np.diff(values) <= 0).any()


@pytest.mark.parametrize("base", [0, 5])
def test_a_flush_behind_what_was_played_changes_nothing(base: int) -> None:
    player, now = playing()
    before = player.next
    player.flush(base)
    assert player.next == before
    assert player.read(now + 0.02).kind == "played"


def test_a_flush_before_the_first_frame_and_of_silence() -> None:
    player = Player(AUDIO)
    player.flush(7)
    assert player.next == 7
    assert player.read(0.0).kind == "waiting"
    assert not player.insert(frame(3, 1), 0.1)
    player.insert(frame(7, 0), 0.1)
    player.flush(9)
    assert player.snapshot(0.2).flushed == 1


def test_a_flush_behind_the_end() -> None:
    player, now = playing(count=12)
    player.finish(12)
    for _ in range(20):
        now += 0.02
        block = player.read(now)
    assert block.ended
    player.flush(60)
    assert player.read(now).kind == "waiting"


def test_the_buffer_alone_drops_nothing_of_what_is_behind_it() -> None:
    buffer = JitterBuffer(5)
    buffer.insert(frame(5, 1), 0.0)
    buffer.flush(5)
    assert (buffer.depth, buffer.counters.flushed) == (1, 0)
    buffer.insert(frame(9, 1), 0.0)
    buffer.flush(7)
    assert (buffer.next, buffer.depth, buffer.counters.flushed) == (7, 3, 1)
