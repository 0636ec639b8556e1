"""The loudspeaker, with a sound card made by hand."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from tenuto.cli.report import LiveReport
from tenuto.cli.sinkevents import DeviceLost, DeviceOpened
from tenuto.cli.speaker import Speaker
from tenuto.cli.switches import Switches
from tenuto.client import Trust, open_stream
from tenuto.media import Frame
from tenuto.wire import End, Format
from tests.client.peer import AUDIO, Asked, Out, frames, records, sentence, whole
from tests.client.shell import Run, Served, one_line
from tests.support.soundcard import Card, FakeSounddevice


def test_the_loudspeaker_plays_every_sample(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last frame of one sample is heard, and silence stands only around the speech."""
    fake = FakeSounddevice(Card(AUDIO.rate))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    sent = [*frames(24, 1), Frame(25, b"\x07\x00", 1)]
    body = records(Format(AUDIO, 1, 0, 1), *sent, End(25, 24 * 320 + 1))
    with served(whole(body)) as peer:
        result = run("play", peer.url(), "--no-drift", "--json")
    assert result.exit_code == 0, result.output
    assert fake.samples.tobytes().strip(b"\0") == b"".join(f.payload for f in sent).strip(b"\0")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    (opened,) = [line for line in lines if line["event"] == "device-opened"]
    assert (opened["name"], opened["rate"], opened["channels"]) == ("card", 16000, 1)
    last = lines[-1]
    assert last["device"] == {"name": "card", "rate": 16000, "channels": 1, "latency": 0.03}
    assert (last["device_reopened"], last["device_underflows"]) == (0, 0)
    playout = last["playout"]
    assert (playout["mode"], playout["state"], playout["played"]) == ("gapless", "ended", 25)


def test_the_line_on_a_terminal_tells_of_the_loudspeaker(
    served: Served, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSounddevice(Card(underflows={2})))
    screen = io.StringIO()
    report = LiveReport(Console(file=screen, force_terminal=True, width=200, height=5))

    async def listen(url: str) -> None:
        async with open_stream(url, trust=trust, on_event=report.event) as stream:
            speaker = Speaker(stream.format, on_event=report.event)
            await speaker.open()
            with report:
                report.playing(stream, speaker, Switches())
                async for frame in stream:
                    await speaker.write([frame], stream.format)
                await speaker.finish()
                report.event(DeviceLost("card\x1b", "it stopped by itself"))
                report.event(DeviceOpened("other", 44100, 2, 0.1, 2))

    with served(whole(sentence(25))) as peer:
        asyncio.run(listen(peer.url()))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    for part in (
        "0 underruns  0 ms concealed  1 device underflows",
        "/80 ms",
        "the loudspeaker card\\x1b was lost: it stopped by itself",
        "playing on other at 44100 Hz",
    ):
        assert part in shown


def test_before_a_cut_is_an_error_what_came_is_heard(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaking(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(records(Format(AUDIO, 0), *frames(60)))
        await asyncio.sleep(0.3)
        await out.send(b"\xff" * 40)
        await out.end()

    for script, error in [
        (whole(records(Format(AUDIO, 0), *frames(60))), "without END"),
        (breaking, "tenuto: "),
    ]:
        fake = FakeSounddevice(Card(AUDIO.rate))
        monkeypatch.setitem(sys.modules, "sounddevice", fake)
        with served(script) as peer:
            result = run("play", peer.url(), "--no-drift", "--patience", "0")
        assert result.exit_code == 1
        assert error in one_line(result)
        heard = fake.samples.tobytes().strip(b"\0")
        assert heard == b"".join(f.payload for f in frames(60)).strip(b"\0")


def test_an_empty_stream_is_played(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSounddevice(Card()))
    with served(whole(sentence(0))) as peer:
        assert run("play", peer.url()).exit_code == 0


def test_no_loudspeaker(served: Served, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    result = run("speak", "Hello")
    assert result.exit_code == 2
    assert "pip install 'tenuto[speaker]'" in one_line(result)
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSounddevice(None))
    with served(whole(sentence(3))) as peer:
        result = run("play", peer.url())
    assert result.exit_code == 2
    assert "--output speech.wav" in one_line(result)


def test_live_asks_for_a_short_lead(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSounddevice(Card()))
    with served(whole(sentence(3))) as peer:
        url = peer.url()
        assert run("play", url, "--mode", "live", "--json").exit_code == 0
        assert run("play", url, "--mode", "live", "--lead", "0.4").exit_code == 0
        assert run("play", url + "&lead=1", "--mode", "live").exit_code == 0
        assert run("play", url).exit_code == 0
    paths = [asked.path.partition("text=x")[2] for _, asked in peer.asked]
    leads = [[part for part in path.split("&") if "lead" in part] for path in paths]
    assert leads == [["lead=0.2"], ["lead=0.4"], ["lead=1"], []]


def test_a_card_that_refuses_ends_the_command(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSounddevice(Card(refused=True))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with served(whole(sentence(3))) as peer:
        result = run("speak", "x", "--server", peer.url(path=""), "--json")
    assert result.exit_code == 2
    assert "no loudspeaker for 16000 Hz and 1 channels: Device unavailable" in one_line(result)
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["error"]["message"].startswith("no loudspeaker")


HANGS = """
import os, time
_exit_handler = lambda: time.sleep(60)
import atexit
atexit.register(_exit_handler)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # as sounddevice does around Pa_Initialize
time.sleep(60)
"""


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_card_that_hangs_when_it_is_looked_for_hangs_nobody(
    tmp_path: Path, interrupted: bool
) -> None:
    (tmp_path / "sounddevice.py").write_text(HANGS, encoding="ascii")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", ""), os.getcwd()])
    command = [sys.executable, "-m", "tenuto.cli", "play", "https://localhost:9/x"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as play:
        started = time.monotonic()
        if interrupted:
            time.sleep(2.0)
            play.send_signal(signal.SIGINT)
            assert play.wait(3) == 130
        else:
            assert play.wait(20) == 2
            assert time.monotonic() - started > 5.0
            assert play.stderr is not None
            line = play.stderr.read()
            assert line.startswith("tenuto: the loudspeaker did not open within 5 s. choose")


def test_a_portaudio_that_does_not_begin_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "sounddevice.py").write_text("raise RuntimeError('Error initializing')", "ascii")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", ""), os.getcwd()])
    command = [sys.executable, "-m", "tenuto.cli", "play", "https://localhost:9/x"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tenuto: PortAudio does not begin: Error initializing. see")
