"""The jitter buffer on made and recorded arrivals, against who knew them all beforehand.

Everything runs in virtual time: the same arrivals give the same figures on every machine, but
for the last line before the summary, which says what a call costs. For each path and mode:

- mean_delay: from the quickest frame's offset (arrival minus place in media time) to playout;
- late: turns of 20 ms, in per cent of the frames, for which the frame was not there: concealed
  or waited for;
- optimum_constant, optimum_segments: the least delay at which no more frames are late, one for
  all, or one for each 5 s.

Figures are taken after the first 10 s, so that beginnings do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from time import perf_counter_ns

from bench.arrivals import LIVE_LEAD, PATHS, Arrival, path
from bench.arrivals_optimum import constant_delay, segment_delay
from bench.arrivals_play import Playback, play, voice
from bench.report import Figures, machine, progress, rounds, spread
from tenuto.client.arrivals import MAX_LINES, read_arrivals
from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tenuto.playout import Player, PlayoutMode

__all__ = ["judge", "run"]

SEED = 1
SETTLED = 500
"""Frames before the first that counts: 10 s."""

LEADS: dict[PlayoutMode, float] = {"gapless": 2.0, "live": LIVE_LEAD}

MAX_LINE = 10_000

MOST_FRAMES = 2 * MAX_LINES
"""Of a recording; 11 hours."""


def run(quick: bool, files: Sequence[str] = ()) -> Iterator[Figures]:
    """A line for each path and mode, one for each file and mode, the costs, the summary."""
    recorded = [(name, _recorded(name)) for name in files]
    frames = 3_000 if quick else 30_000
    lines: list[Figures] = []
    for name in PATHS:
        for mode, lead in LEADS.items():
            arrivals = path(name, frames, SEED, lead)
            lines.append({"bench": "playout", "path": name, "lead": lead} | judge(arrivals, mode))
            yield lines[-1]
    for name, arrivals in recorded:
        for mode in LEADS:
            with progress(f"{name}, {mode}") as told:
                figures = judge(arrivals, mode, told)
            yield {"bench": "playout", "file": name} | figures
    costs = _costs(quick)
    yield {"bench": "playout", "costs": True} | costs
    yield {
        "bench": "playout",
        "summary": True,
        "quick": quick,
        "frames": frames,
        "above_constant_optimum": _column(lines, "above_constant"),
        "late": _column(lines, "late"),
        "microseconds": costs["microseconds"],
        "machine": machine(),
    }


def judge(
    given: Sequence[Arrival], mode: PlayoutMode, told: Callable[[float], None] = lambda _: None
) -> dict[str, object]:
    """Play these arrivals in this mode, and compare; times in milliseconds."""
    # From 0 on: the media time of a frame far into a session has no room for milliseconds.
    first = min(sequence for _, sequence in given)
    arrivals = [(at, sequence - first) for at, sequence in given]
    playback = play(arrivals, mode=mode, told=told)
    last = max(sequence for _, sequence in arrivals)
    # A short recording has no beginning to spare.
    frames = range(min(SETTLED, last // 2), last + 1)
    offsets: dict[int, float] = {}
    for at, sequence in arrivals:
        offsets.setdefault(sequence, at - sequence * FRAME_DURATION)
    least = min(offsets[n] for n in frames if n in offsets)
    late = playback.late(frames.start)
    constant = constant_delay(offsets, frames, late) - least
    segments = segment_delay(offsets, frames, late) - least
    mean = fmean([turn.position for turn in playback.played(frames.start)] or [least]) - least
    return {
        "mode": mode,
        "mean_delay": _ms(mean),
        "late": round(100 * late / len(frames), 3),
        "underruns": playback.underruns(frames.start),
        "concealed": _ms(_concealed(playback, frames.start)),
        "optimum_constant": _ms(constant),
        "optimum_segments": _ms(segments),
        "above_constant": _ms(mean - constant),
        "above_segments": _ms(mean - segments),
    }


def _concealed(playback: Playback, first: int) -> float:
    return sum(
        turn.duration
        for turn in playback.turns
        if turn.kind == "concealed" and (turn.sequence or 0) >= first
    )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _column(lines: Sequence[Figures], name: str) -> dict[str, dict[str, object]]:
    column: dict[str, dict[str, object]] = {}
    for line in lines:
        column.setdefault(str(line["mode"]), {})[str(line["path"])] = line[name]
    return column


def _recorded(name: str) -> list[Arrival]:
    try:
        with Path(name).open(encoding="utf-8") as file:
            # No line is that long; what is none of ours may be one line of any length.
            recording = read_arrivals(iter(lambda: file.readline(MAX_LINE), ""), name)
    except UnicodeDecodeError:
        raise OperatorError(f"{name} is no text, so no recording of arrivals") from None
    except OSError as error:
        raise OperatorError(f"cannot read {name}: {error.strerror}") from None
    if sum(event.count for event in recording.events) > MOST_FRAMES:
        raise OperatorError(f"{name} holds more than {MOST_FRAMES:,} frames")
    arrivals = list(recording.frames())
    if len(arrivals) < 2:
        raise OperatorError(f"{name} holds no two frames", remedy="record for longer")
    return arrivals


def _costs(quick: bool) -> dict[str, object]:
    """Microseconds for a frame of 16 kHz mono: to insert, to read in either way, to conceal."""
    audio = AudioFormat()
    payloads = voice(audio)
    times: dict[str, list[float]] = {"insert": [], "read": [], "read_scaled": [], "conceal": []}
    for number in rounds(20 if quick else 200, "costs"):
        frames = [
            Frame(n, payloads[n % len(payloads)], audio.samples_per_frame)
            for n in range(number * 100, number * 100 + 100)
        ]
        _time_reads(frames, audio, "gapless", times, "read")
        _time_reads(frames, audio, "live", times, "read_scaled")
    return {"microseconds": {name: spread(values) for name, values in times.items()}}


def _time_reads(
    frames: Sequence[Frame],
    audio: AudioFormat,
    mode: PlayoutMode,
    times: dict[str, list[float]],
    name: str,
) -> None:
    """Insert all at once, half a second before the first is read, and time every call.

    Mode `live` loses some of it: its reads are counted as scaled where they did.
    """
    player = Player(audio, mode=mode, start=frames[0].sequence)
    base = frames[0].sequence * FRAME_DURATION
    for frame in frames:
        at = base + (frame.sequence - frames[0].sequence) * FRAME_DURATION
        began = perf_counter_ns()
        player.insert(frame, at)
        times["insert"].append((perf_counter_ns() - began) / 1000)
    now = base + 0.5
    while player.buffered:
        began = perf_counter_ns()
        block = player.read(now)
        elapsed = (perf_counter_ns() - began) / 1000
        if (mode == "live") == (len(block.samples) != audio.samples_per_frame):
            times[name].append(elapsed)
        now += block.duration
    # Nothing is held: the first block of an episode, which looks for the period.
    began = perf_counter_ns()
    player.read(now)
    times["conceal"].append((perf_counter_ns() - began) / 1000)
