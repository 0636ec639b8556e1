"""Files and pipes of streams that change their format."""

from __future__ import annotations

import json
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from tenuto.media import AudioFormat, Frame
from tenuto.wire import End, Format
from tests.client.authority import Authority
from tests.client.peer import records, whole
from tests.client.shell import Run, Served, one_line

FORMATS = [AudioFormat(16000, 1), AudioFormat(48000, 2), AudioFormat(8000, 1), AudioFormat(16000)]
PART = 50  # frames

COMMAND = [sys.executable, "-m", "tenuto.cli", "play"]


def tone(audio: AudioFormat, first: int) -> bytes:
    """One second of 440 Hz that goes on where the part before it ended."""
    times = first / 50 + np.arange(audio.samples_per_frame * PART) / audio.rate
    wave = np.rint(8000 * np.sin(2 * np.pi * 440 * times)).astype("<i2")
    return np.repeat(wave[:, None], audio.channels, axis=1).tobytes()


def changing() -> bytes:
    body, samples = b"", 0
    for n, audio in enumerate(FORMATS):
        first = n * PART
        data = tone(audio, first)
        size = audio.frame_size
        body += records(
            Format(audio, first),
            *[
                Frame(first + k, data[k * size : (k + 1) * size], audio.samples_per_frame)
                for k in range(PART)
            ],
        )
        samples += audio.samples_per_frame * PART
    return body + records(End(len(FORMATS) * PART, samples))


def check(data: bytes) -> None:
    """Four seconds of one tone at 16,000 Hz; at the seams a filter of 8,000 Hz rings a little."""
    samples = np.frombuffer(data, "<i2").astype(int)
    assert len(samples) == 4 * 16000
    times = np.arange(len(samples)) / 16000
    error = np.abs(samples - 8000 * np.sin(2 * np.pi * 440 * times))
    away = np.abs((np.arange(len(samples)) + 8000) % 16000 - 8000) > 800  # 50 ms from a seam
    assert error[away].max() < 20
    assert (samples[:16000] == np.frombuffer(tone(FORMATS[0], 0), "<i2")).all()
    assert (samples[48000:] == np.frombuffer(tone(FORMATS[3], 150), "<i2")).all()


def test_a_file_keeps_its_first_format(served: Served, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with served(whole(changing())) as peer:
        result = run("play", peer.url(), "-o", path, "--json")
    assert result.exit_code == 0
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["samples"], last["seconds"]) == (88_000, 4.0)  # 16, 48, 8 and 16 thousand
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels()) == (16000, 1)
        check(file.readframes(100_000))


def test_a_pipe_keeps_its_first_format(served: Served, authority: Authority) -> None:
    with served(whole(changing())) as peer:
        done = subprocess.run(
            [*COMMAND, peer.url(), "-o", "-", "--ca", str(authority.ca)],
            capture_output=True,
            timeout=60,
            check=True,
        )
    check(done.stdout)


def test_a_cut_within_a_later_format_leaves_all_that_came(
    served: Served, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "a.raw"
    body = records(
        Format(FORMATS[0], 0),
        Frame(0, bytes(640), 320),
        Format(FORMATS[1], 1),
        Frame(1, bytes(3840), 960),
    )
    with served(whole(body)) as peer:
        result = run("play", peer.url(), "-o", path, "--patience", "0")
    assert result.exit_code == 1
    assert path.stat().st_size == 2 * 640


def test_without_soxr_what_came_before_the_change_is_kept(
    served: Served, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    path = tmp_path / "a.wav"
    with served(whole(changing())) as peer:
        result = run("play", peer.url(), "-o", path)
    assert result.exit_code == 2
    line = one_line(result)
    assert "from 16000 Hz, 1 channel to 48000 Hz, 2 channels" in line
    assert "pip install 'tenuto[audio]'" in line
    with wave.open(str(path)) as file:
        assert file.readframes(100_000) == tone(FORMATS[0], 0)
