"""Every kind of source with its parameters: the one table that all else is made from."""

from __future__ import annotations

from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.clauses import MAX_TEXT
from tenuto.sources.parameters import Real, SourceKind, Text, Whole
from tenuto.sources.speech import (
    DEFAULT_LANGUAGE,
    DEFAULT_PITCH,
    DEFAULT_SPEED,
    MAX_PITCH,
    MAX_SPEED,
    MIN_SPEED,
)
from tenuto.sources.tone import MAX_CHANNELS, MAX_RATE, MAX_SECONDS, MIN_RATE

__all__ = [
    "BLOCK_AFTER",
    "CHANNELS",
    "CLOCK",
    "COUNTING",
    "DELAY",
    "FAIL_AFTER",
    "FAIL_AFTER_STEPS",
    "FILE",
    "FILE_NAME",
    "FIRST_DELAY",
    "FIRST_TOKEN",
    "FRAMES",
    "FREQUENCY",
    "JITTER",
    "KINDS",
    "LANG",
    "LEVEL",
    "MODEL",
    "MODEL_SECONDS",
    "OFFSET",
    "PITCH",
    "RATE",
    "RTF",
    "RUN",
    "SECONDS",
    "SEED",
    "SKIP",
    "SPEECH",
    "SPEED",
    "STALL",
    "STALL_EVERY",
    "STDIN",
    "STEP",
    "TEXT",
    "TONE",
    "TONE_PITCH",
    "TO_CHANNELS",
    "TO_RATE",
    "VOICE",
]

_MAX_FRAMES = 10_000_000
_MAX_DELAY = 600.0
_MAX_STEP = 2000.0
_MAX_STEPS = 1_000_000
_MAX_RTF = 10.0
_MAX_SEED = 1_000_000_000

SKIP = Whole("skip", "left out at the beginning, to go on behind", 0, _MAX_FRAMES, 0, "frames")
OFFSET = Whole("offset", "begins with the clause that holds this character", 0, MAX_TEXT, 0)

RATE = Whole("rate", "samples/s, divisible by 50", MIN_RATE, MAX_RATE, 16000, "Hz")
CHANNELS = Whole("channels", "all say the same", 1, MAX_CHANNELS, 1)

TO_RATE = Whole("rate", "resampled to it; a multiple of 50", MIN_RATE, MAX_RATE, unit="Hz")
TO_CHANNELS = Whole("channels", "mixed to so many", 1, MAX_CHANNELS)

TEXT = Text("text", "what is spoken", form=f"1 to {MAX_TEXT:,} characters", required=True)
LANG = Text("lang", "the language; finds its best voice", DEFAULT_LANGUAGE, "a language tag")
VOICE = Text("voice", "instead of lang, or one that speaks it", form="a voice or tag, +variant")
SPEED = Whole("speed", "how fast", MIN_SPEED, MAX_SPEED, DEFAULT_SPEED, "words/min")
PITCH = Whole("pitch", "how high", 0, MAX_PITCH, DEFAULT_PITCH)
SPEECH = SourceKind(
    "speech",
    "text, spoken by espeak-ng",
    (TEXT, LANG, VOICE, SPEED, PITCH, OFFSET, TO_RATE, TO_CHANNELS),
    implied_by=("text",),
)

FILE_NAME = Text("file", "a sound file of the media folder", form="a relative path", required=True)
FILE = SourceKind(
    "file",
    "a file of sound",
    (FILE_NAME, SKIP, TO_RATE, TO_CHANNELS),
    implied_by=("file",),
    needs="--media FOLDER",
)

_HALF_RATE = "half the rate"
TONE_PITCH = Real("tone", "the tone's frequency", 1, MAX_RATE / 2, 440.0, "Hz", _HALF_RATE)
FREQUENCY = Real("frequency", "the same by another name", 1, MAX_RATE / 2, 440.0, "Hz", _HALF_RATE)
SECONDS = Real("seconds", "how long", 0, MAX_SECONDS, 1.0, "s")
LEVEL = Real("level", "the peak, 1 being full scale", 0, 1, 0.5)
TONE = SourceKind(
    "tone",
    "a sine",
    (TONE_PITCH, FREQUENCY, SECONDS, SKIP, RATE, CHANNELS, LEVEL),
    implied_by=("tone",),
)

STDIN = SourceKind(
    "stdin",
    "the server's standard input, one session for all",
    live=None,
    needs="--stdin live|pausable",
)

FRAMES = Whole("frames", "how many; endless without", 0, _MAX_FRAMES, unit="frames")
RUN = Whole("run", "one frame without; bytes given at a time", 1, MAX_RUN_SIZE, unit="bytes")
FIRST_DELAY = Real("first_delay", "before the first run", 0, _MAX_DELAY, 0.0, "s")
DELAY = Real("delay", "between two runs", 0, _MAX_DELAY, 0.0, "s")
FAIL_AFTER = Whole("fail_after", "then it fails", 0, _MAX_FRAMES, unit="frames")
BLOCK_AFTER = Whole("block_after", "then nothing comes", 0, _MAX_FRAMES, unit="frames")
COUNTING = SourceKind(
    "counting",
    "frames that say their own number",
    (FRAMES, RUN, FIRST_DELAY, DELAY, FAIL_AFTER, BLOCK_AFTER, SKIP, RATE, CHANNELS),
    needs="--test-sources",
    for_tests=True,
)

MODEL_SECONDS = Real("seconds", "audio in all", 0, MAX_SECONDS, 10.0, "s")
STEP = Real("step", "audio that one step gives", 1, _MAX_STEP, 160.0, "ms")
FIRST_TOKEN = Real("first_token", "until the first step is ready", 0, _MAX_DELAY, 0.2, "s")
RTF = Real("rtf", "a step's time, as a part of its audio's; 0: none", 0, _MAX_RTF, 0.25)
STALL_EVERY = Whole("stall_every", "it stalls before every n-th step; 0: never", 0, _MAX_STEPS, 0)
STALL = Real("stall", "how long it stalls", 0, _MAX_DELAY, 0.0, "s")
FAIL_AFTER_STEPS = Whole("fail_after", "then it fails", 0, _MAX_STEPS, unit="steps")
JITTER = Real("jitter", "how much of a step's time varies either way", 0, 1, 0.0)
SEED = Whole("seed", "the same seed, the same times", 0, _MAX_SEED, 0)
MODEL = SourceKind(
    "model",
    "numbered frames at the pace of a speech model",
    (
        MODEL_SECONDS,
        STEP,
        FIRST_TOKEN,
        RTF,
        STALL_EVERY,
        STALL,
        FAIL_AFTER_STEPS,
        JITTER,
        SEED,
        SKIP,
        RATE,
        CHANNELS,
    ),
    needs="--test-sources",
    for_tests=True,
)

CLOCK = SourceKind(
    "clock",
    "frames that say when each was due, live",
    (FRAMES,),
    needs="--test-sources",
    for_tests=True,
    live=True,
)

KINDS = (SPEECH, FILE, TONE, STDIN, COUNTING, MODEL, CLOCK)
