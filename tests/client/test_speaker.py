"""The loudspeaker, with a sound card made by hand."""

from __future__ import annotations

import sys
import threading
import time
from types import ModuleType
from typing import Any

import pytest

from tenuto.media import Frame
from tenuto.wire import End, Format
from tests.client.peer import AUDIO, frames, records, sentence, whole
from tests.client.shell import Run, Served, one_line


class FakeSpeaker(ModuleType):
    """A sound card whose clock runs twenty times too fast."""

    class PortAudioError(Exception):
        pass

    class CallbackStop(Exception):  # noqa: N818 - the library's name
        pass

    def __init__(self, *, device: bool = True) -> None:
        super().__init__("sounddevice")
        self.heard = bytearray()
        speaker = self

        class RawOutputStream:
            def __init__(self, **options: Any) -> None:
                if not device:
                    raise FakeSpeaker.PortAudioError("Error querying device -1")
                self.options = options
                self.stopped = threading.Event()
                self.thread = threading.Thread(target=self.play)

            def start(self) -> None:
                self.thread.start()

            def play(self) -> None:
                size = self.options["blocksize"] * self.options["channels"] * 2
                try:
                    while not self.stopped.is_set():
                        block = bytearray(size)
                        self.options["callback"](memoryview(block), size, None, None)
                        speaker.heard += block
                        time.sleep(0.001)
                except FakeSpeaker.CallbackStop:
                    pass
                self.options["finished_callback"]()

            def abort(self) -> None:
                self.stopped.set()

            def close(self) -> None:
                self.stopped.set()
                self.thread.join()

        self.RawOutputStream = RawOutputStream


def test_the_loudspeaker_plays_every_sample(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B15: a last frame of one sample is heard, and silence stands only around the speech."""
    fake = FakeSpeaker()
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    sent = [*frames(24, 1), Frame(25, b"\x07\x00", 1)]
    body = records(Format(AUDIO, 1, 0, 1), *sent, End(25, 24 * 320 + 1))
    with served(whole(body)) as peer:
        result = run("play", peer.url())
    assert result.exit_code == 0, result.output
    assert bytes(fake.heard).strip(b"\0") == b"".join(f.payload for f in sent).strip(b"\0")


def test_a_cut_silences_the_loudspeaker(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSpeaker())
    with served(whole(records(Format(AUDIO, 0), *frames(9)))) as peer:
        result = run("play", peer.url())
    assert result.exit_code == 1
    assert "without END" in one_line(result)


def test_an_empty_stream_is_played(
    served: Served, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSpeaker())
    with served(whole(sentence(0))) as peer:
        assert run("play", peer.url()).exit_code == 0


def test_no_loudspeaker(served: Served, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    result = run("speak", "Hello")
    assert result.exit_code == 2
    assert "pip install 'tenuto[speaker]'" in one_line(result)
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSpeaker(device=False))
    with served(whole(sentence(3))) as peer:
        result = run("play", peer.url())
    assert result.exit_code == 2
    assert "--output speech.wav" in one_line(result)
