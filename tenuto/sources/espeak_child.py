"""The process that holds espeak-ng: `python espeak_child.py LIBRARY DATA_PATH`.

It is run by its path and imports only the standard library, so that it starts in 20 ms and
shares nothing with the server but two pipes. Requests on standard input and answers on
standard output are a letter, a 32-bit number and, for those marked *, as many bytes:

    S* speak: voice, speed, pitch, "1" or "0" (pause at the end), text, all UTF-8, NULs between
    A  abort the clause that is being spoken
    L* -> V*  list voices: JSON, [identifier, name, [[priority, language], ...]] each, and the
              names of the variants that any of them takes as VOICE+VARIANT
    R* run of samples          M  word at this character (from 1) begins with the next run
    E  end of a clause, with the library's status (0 is success)
    X* the library cannot be used: why
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import queue
import signal
import struct
import sys
import threading
from typing import Any, BinaryIO

__all__ = ["CLAUSE_DEADLINE", "HEADER", "RATE", "main"]

HEADER = struct.Struct("<cI")
RATE = 22050
CLAUSE_DEADLINE = 10
"""Seconds after which a clause has hung (the slowest seen took 0.4) and the process dies."""

_SYNCHRONOUS = 2  # espeak_AUDIO_OUTPUT: samples go to the callback, in the caller's thread.
_DONT_EXIT = 0x8000
_CHARS_UTF8, _END_PAUSE = 0x1, 0x1000
_POS_CHARACTER = 1
_SPEED, _PITCH = 1, 3  # espeak_PARAMETER; absolute values.
_EVENT_LIST_TERMINATED, _EVENT_WORD = 0, 1

# What a voice's file says of intonation stays until another one says something else, and most
# say nothing: behind +robosoft2 (-25) all were quieter. This variant says 0, as at the start.
_NEUTRAL = b"gmw/en+robosoft"


class _Event(ctypes.Structure):
    """espeak_EVENT; the union at its end is as large as its largest member, char[8]."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_uint64),
    )


class _Voice(ctypes.Structure):
    """espeak_VOICE; `languages` is a pointer because its text holds NULs."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


class _Library:
    """espeak-ng behind its few calls. `aborted` may be set by another thread at any time."""

    def __init__(self, path: str, data: str, out: BinaryIO) -> None:
        self.aborted = False
        self._data = data
        self._out = out
        self._library = ctypes.CDLL(path)
        rate = self._library.espeak_Initialize(_SYNCHRONOUS, 0, os.fsencode(data), _DONT_EXIT)
        if rate != RATE:
            raise OSError(f"espeak-ng started with {rate} Hz instead of {RATE}")
        self._library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._callback = _Callback(self._on_audio)  # Kept: the library keeps a bare pointer.
        self._library.espeak_SetSynthCallback(self._callback)
        self._sample = 0
        self._words: list[tuple[int, int]] = []
        self._voice = b""

    def voices(self) -> list[tuple[str, str, list[tuple[int, str]]]]:
        found = []
        for voice in self._list(None):
            identifier = os.fsdecode(voice.identifier)
            languages = _read_languages(voice.languages)
            if _has_dictionary(self._data, identifier, languages[0][1]):
                found.append((identifier, os.fsdecode(voice.name), languages))
        return found

    def variants(self) -> list[str]:
        wanted = ctypes.create_string_buffer(b"variant")
        spec = _Voice(languages=ctypes.addressof(wanted))
        # The names of their files, which is what the library takes behind the plus.
        return [
            os.fsdecode(voice.identifier).rpartition("/")[2]
            for voice in self._list(ctypes.byref(spec))
        ]

    def _list(self, spec: Any) -> list[_Voice]:
        listed = self._library.espeak_ListVoices(spec)
        return [each.contents for each in itertools.takewhile(bool, listed)]

    def speak(self, voice: bytes, speed: int, pitch: int, text: bytes, pause: bool) -> int:
        """Write runs and marks until the clause or its listener is done; 0 is success."""
        self.aborted = False
        self._sample = 0
        self._words.clear()
        if voice != self._voice:
            self._voice = voice
            self._library.espeak_SetVoiceByName(_NEUTRAL)
        if status := self._library.espeak_SetVoiceByName(voice):
            return int(status)
        # Each time, and after the voice: the last clause was somebody else's.
        for parameter, value in ((_SPEED, speed), (_PITCH, pitch)):
            if status := self._library.espeak_SetParameter(parameter, value, 0):
                return int(status)
        flags = _CHARS_UTF8 | (_END_PAUSE if pause else 0)
        size = ctypes.c_size_t(len(text) + 1)
        return int(self._library.espeak_Synth(text, size, 0, _POS_CHARACTER, 0, flags, None, None))

    def _on_audio(self, wave: Any, count: int, events: Any) -> int:
        number = 0
        while events[number].type != _EVENT_LIST_TERMINATED:
            event = events[number]
            if event.type == _EVENT_WORD:
                self._words.append((event.sample, event.text_position))
            number += 1
        if wave and count:
            self._write(ctypes.string_at(wave, 2 * count), count)
        return 1 if self.aborted else 0

    def _write(self, samples: bytes, count: int) -> None:
        """Cut the samples where a word begins, and say so there."""
        written = 0
        while self._words and self._words[0][0] < self._sample + count:
            sample, position = self._words.pop(0)
            cut = max(written, sample - self._sample)
            self._write_run(samples[2 * written : 2 * cut])
            self._out.write(HEADER.pack(b"M", max(position, 0)))
            written = cut
        self._write_run(samples[2 * written :])
        self._out.flush()
        self._sample += count

    def _write_run(self, run: bytes) -> None:
        if run:
            self._out.write(HEADER.pack(b"R", len(run)) + run)


def _read_languages(address: int) -> list[tuple[int, str]]:
    """A priority byte and a name for each language; an empty string ends them."""
    languages = []
    while entry := ctypes.string_at(address):
        languages.append((entry[0], entry[1:].decode("ascii", "replace")))
        address += len(entry) + 1
    return languages


def _has_dictionary(data: str, identifier: str, language: str) -> bool:
    """Some listed voices come without their dictionary: they would say nothing at all."""
    name = language.split("-")[0]
    with contextlib.suppress(OSError), open(f"{data}/lang/{identifier}", "rb") as file:
        for line in file:
            if line.startswith(b"dictionary "):
                name = os.fsdecode(line.split()[1])
    return os.path.exists(f"{data}/{name}_dict")


def _read_requests(library: _Library, requests: queue.SimpleQueue[tuple[bytes, bytes]]) -> None:
    source = sys.stdin.buffer
    while len(header := source.read(HEADER.size)) == HEADER.size:
        kind, size = HEADER.unpack(header)
        if kind == b"A":
            library.aborted = True
        else:
            requests.put((kind, source.read(size)))
    os._exit(0)  # The server is gone, however it went.


def _serve(library: _Library, out: BinaryIO) -> None:
    requests: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(library, requests), daemon=True).start()
    alarm = getattr(signal, "alarm", _no_alarm)  # Windows has none.
    while True:
        kind, body = requests.get()
        alarm(CLAUSE_DEADLINE)
        if kind == b"L":
            listed = json.dumps([library.voices(), library.variants()]).encode()
            out.write(HEADER.pack(b"V", len(listed)) + listed)
        else:
            voice, speed, pitch, pause, text = body.split(b"\0", 4)
            status = library.speak(voice, int(speed), int(pitch), text, pause == b"1")
            out.write(HEADER.pack(b"E", status & 0xFFFFFFFF))
        out.flush()
        alarm(0)


def _no_alarm(seconds: int) -> None:
    """A hung clause is noticed by its listener only."""


def main(library: str, data: str) -> None:
    """Serve requests until standard input ends."""
    # A terminal's Ctrl-C and a service manager's SIGTERM reach the whole group: the server
    # decides when its speech ends, and then closes standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out = sys.stdout.buffer
    try:
        loaded = _Library(library, data, out)
    except OSError as error:
        reason = str(error).encode()
        out.write(HEADER.pack(b"X", len(reason)) + reason)
        out.flush()
        return
    _serve(loaded, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
