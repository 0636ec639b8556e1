"""Somebody pauses the session: the loudspeaker falls silent, goes on, and tells no fault."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.process import ServerProcess
from tenuto.cli.sinkevents import BufferUnderrun, SinkEvent
from tenuto.cli.speaker import Speaker
from tenuto.client import session_url
from tenuto.media import FRAME_DURATION, Frame
from tenuto.playout import PlayoutMode
from tenuto.wire import End, Format, Notice
from tests.client.peer import AUDIO, Asked, Out, records
from tests.client.shell import Run, Served
from tests.support.soundcard import Card, FakeSounddevice
from tests.support.virtualtime import run_in_virtual_time
from tests.support.voiced import voiced

FRAME = AUDIO.samples_per_frame
FADE_OUT, FADE_IN = 80, 48
PAUSED = Notice(json.dumps({"code": "paused", "expires_in": 1800}))
RESUMED = Notice(json.dumps({"code": "resumed"}))

Sound = NDArray[np.int16]

SPEECH: Sound = voiced(3, 1.0)[:, 0]
SPEECH[:FRAME] += 500  # begins with no silence, so that it is found


def speech() -> list[Frame]:
    data = SPEECH.astype("<i2").tobytes()
    size = AUDIO.frame_size
    return [Frame(n, data[n * size : (n + 1) * size], FRAME) for n in range(len(data) // size)]


def silences(heard: Sound, least: float) -> list[tuple[int, int]]:
    """Where no sample is above 0 for so many seconds, in samples."""
    loud = np.flatnonzero(heard)
    found = np.flatnonzero(np.diff(loud) > least * AUDIO.rate)
    return [(int(loud[at]) + 1, int(loud[at + 1])) for at in found]


def is_paused(heard: Sound, sent: Sound, place: int | None = None) -> None:
    """Every sample of `sent` was heard, with one silence in it and the fades around that."""
    first, last = np.flatnonzero(heard)[[0, -1]]
    ((begin, end),) = silences(heard[first : last + 1], 0.3)
    begun = int(np.flatnonzero(sent)[0])
    before = (begun + begin) // FRAME * FRAME
    if place is not None:
        assert before == place * FRAME
    assert begun + begin - before <= FADE_OUT
    assert (heard[first : first + before - begun] == sent[begun:before]).all()
    after, rest = heard[: last + 1][before - len(sent) :], sent[before:]
    assert (after[FADE_IN:] == rest[FADE_IN:]).all()
    assert (np.abs(after[:FADE_IN]) <= np.abs(rest[:FADE_IN])).all()
    assert end - (begun + begin) > 0.3 * AUDIO.rate


def no_faults(playout: dict[str, Any], played: int) -> None:
    names = ("underruns", "waited", "concealed", "skipped", "late", "concealed_ms")
    assert {name: playout[name] for name in names} == dict.fromkeys(names, 0)
    assert playout["played"] == played
    assert playout["target"] <= 0.08


@pytest.mark.parametrize(("mode", "lead"), [("gapless", 0.5), ("live", 0.1)])
def test_a_pause_in_mid_word(
    mode: PlayoutMode, lead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SinkEvent] = []

    async def main() -> tuple[Sound, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        library = FakeSounddevice(Card(AUDIO.rate), loop.time)
        monkeypatch.setitem(sys.modules, "sounddevice", library)
        speaker = Speaker(
            AUDIO, mode=mode, drift=False, on_event=told.append, clock=loop.time, beside=at_once
        )
        await speaker.open()
        sent = speech()
        for run in (sent[:23], sent[23:]):
            began = loop.time()
            for n, frame in enumerate(run):
                await asyncio.sleep(max(0.0, began + n * FRAME_DURATION - lead - loop.time()))
                await speaker.write([frame], AUDIO)
            if run[0].sequence == 0:
                speaker.pause(23)
                await asyncio.sleep(10.0)
                speaker.resume()
                await asyncio.sleep(0.05)
        await speaker.finish()
        return library.samples[:, 0], speaker.account.fields()["playout"]

    heard, playout = run_in_virtual_time(main())
    no_faults(playout, 50)
    if mode == "gapless":
        is_paused(heard, SPEECH, 23)
    assert not [event for event in told if isinstance(event, BufferUnderrun)]


async def at_once(call: Callable[[], Any], within: float, late: object = None) -> Any:
    return call()


def paused_at(place: int, *, together: bool = False) -> Callable[[Asked, Out], Any]:
    """A server that pauses before a frame, and says all before it at once or bit by bit."""

    async def script(asked: Asked, out: Out) -> None:
        sent = speech()
        head: list[Format | Frame | Notice] = [Format(AUDIO, 0), *sent[:place], PAUSED]
        await out.head(tenuto_session="s-1")
        if together:
            await out.send(records(*head))
        else:
            for each in head:
                await out.send(records(each))
                await asyncio.sleep(0.005)
        await asyncio.sleep(place * FRAME_DURATION + 0.8)
        await out.send(records(RESUMED, *sent[place:], End(50, 50 * FRAME)))
        await out.end()

    return script


@pytest.mark.parametrize("together", [True, False])
def test_what_a_server_says_of_a_pause_is_heeded(
    together: bool, served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSounddevice(Card(AUDIO.rate))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with served(paused_at(20, together=together)) as peer:
        result = run("play", peer.url(), "--no-drift", "--json")
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    no_faults(lines[-1]["playout"], 50)
    is_paused(fake.samples[:, 0], SPEECH, 20)
    assert "buffer-underrun" not in {line["event"] for line in lines}


def test_who_comes_to_a_paused_session_waits(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSounddevice(Card(AUDIO.rate))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with served(paused_at(0, together=True)) as peer:
        result = run("play", peer.url(), "--no-drift", "--json")
    assert result.exit_code == 0, result.output
    no_faults(json.loads(result.stdout.splitlines()[-1])["playout"], 50)
    heard = fake.samples[:, 0]
    assert heard.tobytes().strip(b"\0") == SPEECH.astype("<i2").tobytes().strip(b"\0")


def test_a_pause_by_command_at_a_real_server(
    server_process: Callable[..., ServerProcess],
    ca_file: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = server_process()
    tone = "/v1/sessions?tone=331&seconds=3&rate=16000"
    raw = tmp_path / "sent.raw"
    sent_to = session_url(server.url, server.post(tone)["session"])
    assert run("play", sent_to, "--ca", ca_file, "-o", raw).exit_code == 0
    fake = FakeSounddevice(Card(AUDIO.rate))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    session = server.post(tone)["session"]
    control = f"/v1/sessions/{session}/control?command="

    def somebody_else() -> None:
        while not fake.heard or not any(fake.heard[0].data):
            time.sleep(0.01)
        time.sleep(0.5)
        server.post(control + "pause")
        time.sleep(2.0)
        server.post(control + "resume")

    other = threading.Thread(target=somebody_else, daemon=True)
    other.start()
    url = session_url(server.url, session)
    result = run("play", url, "--ca", ca_file, "--lead", "0.5", "--no-drift", "--json")
    other.join(10)
    assert result.exit_code == 0, result.output
    no_faults(json.loads(result.stdout.splitlines()[-1])["playout"], 150)
    is_paused(fake.samples[:, 0], np.frombuffer(raw.read_bytes(), "<i2"))
