"""The loudspeaker on cards that change, vanish, hang and lie, in virtual time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tenuto.cli.sinkevents import (
    BufferUnderrun,
    DeviceLost,
    DeviceOpened,
    DeviceUnderflow,
    SinkEvent,
)
from tenuto.cli.speaker import Speaker
from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tests.support.soundcard import Card, FakeSounddevice, Heard
from tests.support.virtualtime import run_in_virtual_time

T = TypeVar("T")

AUDIO = AudioFormat(16000, 1)
TONE = 440.0


class Hang(BaseException):
    """A call of the library that does not come back."""


async def at_once(
    call: Callable[[], T], within: float, late: Callable[[T], object] | None = None
) -> T:
    try:
        return call()
    except Hang:
        await asyncio.sleep(within)
        raise TimeoutError from None


def tone(audio: AudioFormat, seconds: float, start: float = 0.0) -> list[Frame]:
    times = start + np.arange(round(seconds * audio.rate)) / audio.rate
    wave = np.rint(8000 * np.sin(2 * np.pi * TONE * times)).astype("<i2")
    data = np.repeat(wave[:, None], audio.channels, axis=1).tobytes()
    first = round(start / FRAME_DURATION)
    size = audio.frame_size
    return [
        Frame(first + n, data[at : at + size], len(data[at : at + size]) // audio.bytes_per_sample)
        for n, at in enumerate(range(0, len(data), size))
    ]


class Room:
    """A fake library and what the speaker told, within a virtual loop."""

    def __init__(self, card: Card | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.library = FakeSounddevice(card, self.loop.time)
        self.events: list[SinkEvent] = []

    def speaker(self, audio: AudioFormat = AUDIO, **options: Any) -> Speaker:
        return Speaker(
            audio, on_event=self.events.append, clock=self.loop.time, beside=at_once, **options
        )

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Room]:
    """Run `script(room)` in virtual time with this card; the room after it."""

    def run(card: Card | None, script: Callable[[Room], Awaitable[None]]) -> Room:
        async def main() -> Room:
            room = Room(card)
            monkeypatch.setitem(sys.modules, "sounddevice", room.library)
            await script(room)
            return room

        return run_in_virtual_time(main())

    return run


Play = Callable[[Card | None, Callable[[Room], Awaitable[None]]], Room]


async def paced(
    speaker: Speaker, frames: list[Frame], audio: AudioFormat = AUDIO, lead: float = 0.5
) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    for n, frame in enumerate(frames):
        await asyncio.sleep(max(0.0, started + n * FRAME_DURATION - lead - loop.time()))
        await speaker.write([frame], audio)


async def whole(room: Room, frames: list[Frame], **options: Any) -> None:
    speaker = room.speaker(**options)
    await speaker.open()
    await paced(speaker, frames)
    await speaker.finish()


def sounding(heard: Heard) -> NDArray[np.int16]:
    """The first channel, without the silence around the sound."""
    samples = heard.samples[:, 0]
    loud = np.flatnonzero(np.abs(samples) > 100)
    return samples[loud[0] : loud[-1] + 1] if len(loud) else samples[:0]


def pitch(samples: NDArray[np.int16], rate: int) -> float:
    """By its crossings of zero upwards."""
    up = np.flatnonzero((samples[:-1] < 0) & (samples[1:] >= 0))
    return float((len(up) - 1) * rate / (up[-1] - up[0]))


def test_on_a_card_of_the_same_rate_every_sample_is_played(play: Play) -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(1, 32767, 25 * 320 + 7, "<i2").tobytes()
    frames = [
        Frame(n, data[at : at + 640], len(data[at : at + 640]) // 2)
        for n, at in enumerate(range(0, len(data), 640))
    ]
    for block in (1, 37, 256, 1024, 5000):
        card = Card(16000, block=block)
        room = play(card, lambda room: whole(room, frames, drift=False))
        assert bytes(room.library.heard[0].data).strip(b"\0") == data.strip(b"\0"), block
        assert room.library.heard[0].closed


def test_a_card_with_a_rate_of_its_own_gets_that(play: Play) -> None:
    frames, delays = tone(AUDIO, 3.0), []

    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        await paced(speaker, frames)
        await speaker.finish()
        await asyncio.sleep(1.0)
        delays.append(speaker.account.playout.delay)

    room = play(Card(44100, channels=(2,)), script)
    (heard,) = room.library.heard
    assert delays == [pytest.approx(0.5, abs=0.1)]  # the lead, also after the end
    assert (heard.rate, heard.channels) == (44100, 2)
    assert (heard.samples[:, 0] == heard.samples[:, 1]).all()
    assert len(sounding(heard)) / heard.rate == pytest.approx(3.0, rel=0.01)
    assert pitch(sounding(heard), heard.rate) == pytest.approx(TONE, rel=0.002)
    assert np.abs(np.diff(sounding(heard).astype(int))).max() < 600  # the tone's own: 502
    assert room.of(DeviceOpened) == [DeviceOpened("card", 44100, 2, 0.03, 1)]


def test_the_streams_rate_is_preferred_where_the_card_takes_it(play: Play) -> None:
    room = play(Card(48000, takes=(48000, 16000)), lambda room: whole(room, tone(AUDIO, 0.1)))
    assert (room.library.heard[0].rate, room.library.heard[0].channels) == (16000, 1)


def test_cards_that_change_every_two_seconds(play: Play) -> None:
    cards = [Card(24000, block=1024), Card(44100, (2,)), Card(48000, block=1024), Card(16000)]

    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()

        async def change() -> None:
            for card in cards:
                await asyncio.sleep(2.0)
                room.library.replace(card)

        changing = asyncio.create_task(change())
        await paced(speaker, tone(AUDIO, 10.0))
        await speaker.finish()
        await changing
        assert speaker.account.reopened == 4

    room = play(Card(48000), script)
    assert [heard.rate for heard in room.library.heard] == [48000, 24000, 44100, 48000, 16000]
    seconds = sum(len(sounding(heard)) / heard.rate for heard in room.library.heard)
    assert seconds == pytest.approx(10.0, rel=0.01)
    for heard in room.library.heard:
        assert pitch(sounding(heard), heard.rate) == pytest.approx(TONE, rel=0.01)
    assert [lost.reason for lost in room.of(DeviceLost)] == ["it stopped by itself"] * 4
    assert [opened.count for opened in room.of(DeviceOpened)] == [1, 2, 3, 4, 5]
    assert room.library.looks == 4


def test_a_card_that_vanishes_and_comes_back_is_waited_for(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, room.library.replace, None)
        loop.call_later(4.0, room.library.replace, Card(48000))
        await paced(speaker, tone(AUDIO, 6.0))
        await speaker.finish()

    room = play(Card(48000), script)
    assert len(room.library.heard) == 2
    seconds = sum(len(sounding(heard)) / heard.rate for heard in room.library.heard)
    assert seconds == pytest.approx(6.0, rel=0.01)


def test_with_jack_portaudio_is_not_begun_anew(play: Play) -> None:
    async def script(room: Room) -> None:
        room.library.host = "JACK Audio Connection Kit"
        speaker = room.speaker()
        await speaker.open()
        asyncio.get_running_loop().call_later(1.0, room.library.replace, Card(44100))
        await paced(speaker, tone(AUDIO, 3.0))
        await speaker.finish()

    assert len(play(Card(48000), script).library.heard) == 2


@pytest.mark.parametrize("mode", ["live", "gapless"])
def test_a_live_listener_is_not_late_for_ever_after_a_loss(play: Play, mode: str) -> None:
    delays = []

    async def script(room: Room) -> None:
        speaker = room.speaker(mode=mode)
        await speaker.open()
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, room.library.replace, None)
        loop.call_later(4.0, room.library.replace, Card(48000))
        loop.call_later(5.5, lambda: delays.append(speaker.account.playout.delay))
        await paced(speaker, tone(AUDIO, 7.0), lead=0.2)
        await speaker.finish()

    room = play(Card(48000), script)
    seconds = sum(len(sounding(heard)) / heard.rate for heard in room.library.heard)
    if mode == "live":
        assert delays[0] < 0.4
        assert seconds == pytest.approx(4.0, abs=0.5)
    else:
        assert delays[0] > 3.0
        assert seconds == pytest.approx(7.0, rel=0.01)


async def slowly(
    call: Callable[[], T], within: float, late: Callable[[T], object] | None = None
) -> T:
    await asyncio.sleep(4.0)
    return call()


@pytest.mark.parametrize("mode", ["live", "gapless"])
def test_a_live_listener_is_not_late_for_ever_after_a_slow_start(play: Play, mode: str) -> None:
    async def script(room: Room) -> None:
        speaker = Speaker(AUDIO, mode=mode, clock=room.loop.time, beside=slowly)  # type: ignore[arg-type]
        opening = asyncio.create_task(speaker.open())
        await asyncio.sleep(0)
        await paced(speaker, tone(AUDIO, 7.0), lead=0.2)
        await opening
        delay = speaker.account.playout.delay
        await speaker.finish()
        fields = speaker.account.fields()["playout"]
        assert fields["played"] + fields["left_out"] == 350
        if mode == "live":
            assert delay < 0.4
            assert fields["left_out_ms"] == pytest.approx(4000, abs=300)
        else:
            assert delay > 3.5
            assert fields["left_out"] == 0

    room = play(Card(48000), script)
    heard = room.library.heard[0]
    assert len(sounding(heard)) / heard.rate == pytest.approx(
        3.0 if mode == "live" else 7.0, abs=0.4
    )


def test_a_card_that_asks_for_a_second_at_once_is_no_lost_one(play: Play) -> None:
    room = play(Card(48000, block=48000), lambda room: whole(room, tone(AUDIO, 6.0)))
    assert not room.of(DeviceLost)
    assert len(sounding(room.library.heard[0])) / 48000 == pytest.approx(6.0, rel=0.01)


def test_a_card_without_channels_is_told_as_that(play: Play) -> None:
    async def script(room: Room) -> None:
        with pytest.raises(OperatorError, match="card has no channel to play on") as got:
            await room.speaker().open()
        assert "--output speech.wav" in got.value.remedy

    play(Card(48000, channels=(0,)), script)


def test_a_card_that_never_comes_back_is_an_error_within_ten_seconds(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        loop = asyncio.get_running_loop()
        started = loop.time()
        loop.call_later(1.0, room.library.replace, None)
        with pytest.raises(OperatorError, match="was lost .it stopped by itself.* for 10 s") as got:
            await paced(speaker, tone(AUDIO, 60.0))
        await speaker.abandon()
        assert 9.5 < loop.time() - started - 1.0 < 11.0
        assert "--output speech.wav" in got.value.remedy

    play(Card(48000), script)


def test_cards_that_open_and_stop_at_once_are_no_cards(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()

        async def spoil() -> None:
            while True:
                await asyncio.sleep(0.04)
                room.library.replace(Card(48000))

        spoiling = asyncio.create_task(spoil())
        with pytest.raises(OperatorError, match="was lost"):
            await paced(speaker, tone(AUDIO, 60.0))
        spoiling.cancel()
        await speaker.abandon()

    room = play(Card(48000), script)
    assert 10 < len(room.library.heard) < 30


@pytest.mark.parametrize("closes", [True, False])
def test_a_card_that_hangs_is_replaced(
    play: Play, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        loop = asyncio.get_running_loop()

        def hang() -> None:
            stream = room.library.running
            assert stream is not None
            assert stream.task is not None
            stream.task.cancel()
            if not closes:
                monkeypatch.setattr(stream, "abort", raising)

        def raising() -> None:
            raise Hang

        loop.call_later(1.5, hang)
        await paced(speaker, tone(AUDIO, 4.0))
        await speaker.finish()

    room = play(Card(48000), script)
    assert [heard.closed for heard in room.library.heard] == [closes, True]
    assert room.library.looks == closes  # PortAudio cannot begin anew around a hanging stream
    assert [lost.reason for lost in room.of(DeviceLost)] == ["it asked for nothing for 1 s"]
    seconds = sum(len(sounding(heard)) / heard.rate for heard in room.library.heard)
    assert seconds == pytest.approx(4.0, rel=0.01)


def test_a_card_that_never_asks_is_an_error(play: Play) -> None:
    async def script(room: Room) -> None:
        with pytest.raises(OperatorError, match="asked for nothing"):
            await whole(room, tone(AUDIO, 30.0))

    play(Card(48000, silent=True), script)


def test_a_card_that_hangs_at_the_end_holds_up_nobody(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        stream = room.library.running
        assert stream is not None
        stream.options["finished_callback"] = lambda: None
        await paced(speaker, tone(AUDIO, 1.0))
        await asyncio.wait_for(speaker.finish(), 4.0)

    play(Card(48000), script)


@pytest.mark.parametrize(("stated", "true"), [(48000, 24000), (44100, 48000 * 2)])
def test_a_mislabelled_card_is_opened_at_the_rate_it_says_then(
    play: Play, stated: int, true: int
) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        assert room.library.card is not None
        # Opened streams keep their word, or break it; only those who ask anew are told.
        room.library.card = Card(true, takes=(stated, true))
        await paced(speaker, tone(AUDIO, 8.0))
        await speaker.finish()

    room = play(Card(stated, true_rate=true), script)
    assert [heard.rate for heard in room.library.heard] == [true, true]
    (lost,) = room.of(DeviceLost)
    assert lost.reason.endswith(f"samples a second, and says {stated}")
    assert [opened.rate for opened in room.of(DeviceOpened)] == [stated, true]
    heard = room.library.heard[1]
    assert pitch(sounding(heard), heard.rate) == pytest.approx(TONE, rel=0.002)
    assert room.library.heard[0].samples.shape[0] / true < 3.5  # seconds until it was seen


def test_a_card_that_goes_on_lying_is_told_of_once(play: Play) -> None:
    room = play(Card(48000, true_rate=40000), lambda room: whole(room, tone(AUDIO, 12.0)))
    assert len(room.of(DeviceLost)) == 1
    assert len(room.library.heard) == 2


@pytest.mark.parametrize("rate", [47900, 48100, 45000, 51000])
def test_a_card_that_is_merely_inexact_is_let_be(play: Play, rate: int) -> None:
    room = play(Card(48000, true_rate=rate), lambda room: whole(room, tone(AUDIO, 10.0)))
    assert not room.of(DeviceLost)


def test_underflows_of_the_card_are_counted(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        await paced(speaker, tone(AUDIO, 1.0))
        await speaker.finish()
        assert speaker.account.underflows == 3
        assert speaker.account.fields()["device_underflows"] == 3

    room = play(Card(48000, underflows={20, 21, 100}), script)
    assert room.of(DeviceUnderflow)[-1] == DeviceUnderflow(3)


def test_underruns_of_the_buffer_are_told(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        await paced(speaker, tone(AUDIO, 1.0))
        await asyncio.sleep(2.0)
        await paced(speaker, tone(AUDIO, 1.0, 1.0))
        await speaker.finish()
        fields = speaker.account.fields()
        assert fields["playout"]["underruns"] == 1
        assert fields["playout"]["state"] == "ended"
        assert fields["playout"]["concealed_ms"] > 0

    room = play(Card(48000), script)
    assert room.of(BufferUnderrun) == [BufferUnderrun(1)]


def test_no_card_and_cards_that_refuse(play: Play) -> None:
    for card in (None, Card(refused=True)):

        async def script(room: Room) -> None:
            with pytest.raises(OperatorError, match="no loudspeaker for 16000 Hz and 1 channels"):
                await room.speaker().open()

        play(card, script)


@pytest.mark.parametrize("card", [Card(48000), Card(22050, (2,), block=1000), Card(16000)])
def test_formats_change_in_mid_stream_without_a_click(play: Play, card: Card) -> None:
    formats = [AudioFormat(16000, 1), AudioFormat(24000, 2), AudioFormat(48000, 1), AUDIO]

    async def script(room: Room) -> None:
        speaker = room.speaker(formats[0])
        await speaker.open()
        for n, audio in enumerate(formats):
            await paced(speaker, tone(audio, 1.0, float(n)), audio)
        await speaker.finish()

    room = play(card, script)
    (heard,) = room.library.heard
    samples = sounding(heard)
    assert len(samples) / heard.rate == pytest.approx(4.0, rel=0.01)
    assert pitch(samples, heard.rate) == pytest.approx(TONE, rel=0.01)
    own = 8000 * 2 * np.pi * TONE / heard.rate
    assert np.abs(np.diff(samples.astype(int))).max() < 1.2 * own


def test_more_changes_than_fit_wait_for_their_turn(play: Play) -> None:
    formats = [AudioFormat(16000, 1), AudioFormat(8000, 1)]

    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        for n in range(60):
            audio = formats[n % 2]
            await speaker.write(tone(audio, 0.1, n / 10), audio)
        await speaker.finish()

    room = play(Card(48000), script)
    heard = room.library.heard[0]
    assert len(sounding(heard)) / heard.rate == pytest.approx(6.0, rel=0.06)  # 59 seams of 5 ms


@pytest.mark.parametrize("samples", [0, 1, 319, 321])
def test_very_short_streams_are_heard(play: Play, samples: int) -> None:
    data = b"\x07\x10" * samples
    frames = [
        Frame(n, data[at : at + 640], len(data[at : at + 640]) // 2)
        for n, at in enumerate(range(0, len(data), 640))
    ]
    room = play(Card(16000, block=1024), lambda room: whole(room, frames))
    assert bytes(room.library.heard[0].data).strip(b"\0") == data.strip(b"\0")


def test_the_network_waits_for_a_loudspeaker_that_has_enough(play: Play) -> None:
    async def script(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        most = 0.0
        for frame in tone(AUDIO, 60.0):
            await speaker.write([frame], AUDIO)
            most = max(most, speaker.buffered)
        assert 31.9 < most <= 32.0
        await speaker.abandon()

    play(Card(48000), script)


def test_without_soxr_a_card_of_another_rate_cannot_be_used(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)

    async def refused(room: Room) -> None:
        with pytest.raises(OperatorError, match="plays 48000 Hz, the stream has 16000 Hz") as got:
            await room.speaker().open()
        assert "tenuto[audio]" in got.value.remedy

    async def changing(room: Room) -> None:
        speaker = room.speaker()
        await speaker.open()
        await speaker.write(tone(AUDIO, 0.5), AUDIO)
        with pytest.raises(OperatorError, match="plays 16000 Hz, the stream has 24000 Hz"):
            await speaker.write(tone(AudioFormat(24000), 0.5, 0.5), AudioFormat(24000))
        await speaker.abandon()

    play(Card(16000), changing)
    play(Card(48000), refused)
    play(Card(48000, (2,), takes=(16000,)), lambda room: whole(room, tone(AUDIO, 0.1)))
