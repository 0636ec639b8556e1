import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.__main__ import BENCHES
from bench.arrivals import PATHS, path
from bench.arrivals_optimum import constant_delay, segment_delay
from bench.playout import judge
from tenuto.playout import PlayoutMode

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )


def test_ring_prints_json_lines_and_the_summary_last() -> None:
    done = bench("ring", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    *lines, summary = map(json.loads, done.stdout.splitlines())
    operations = ["append", "read", "take", "through"]
    assert [line["operation"] for line in lines] == operations
    for line in lines:
        assert line["bench"] == "ring"
        assert line["rounds"] == 30
        lower, upper = line["ratio"]["quartiles"]
        assert 0 < lower <= line["ratio"]["median"] <= upper
        assert line["nanoseconds_per_frame"]["tenuto"] > 0
        assert line["nanoseconds_per_frame"]["deque"] > 0
    assert (summary["bench"], summary["summary"], summary["quick"]) == ("ring", True, True)
    assert summary["ratio_to_deque"] == {
        line["operation"]: line["ratio"]["median"] for line in lines
    }
    assert summary["window_frames"] == 640
    assert summary["machine"]["python"].count(".") == 2


RECORDING = """{"tenuto_arrivals": 1, "transport": "tcp", "mode": "live", "lead": 0.2, \
"chunk_frames": 5, "rate": 16000, "channels": 1, "started": "2026-01-02T03:04:05+00:00"}
"""


def test_playout_compares_made_and_recorded_arrivals_with_the_optimum(tmp_path: Path) -> None:
    recorded = tmp_path / "arrivals.jsonl"
    events = "".join(f"[{n * 0.1 + 0.003 * (n % 3):.3f}, {n * 5}, 5]\n" for n in range(300))
    recorded.write_text(RECORDING + events, encoding="utf-8")
    done = bench("playout", str(recorded), "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    *lines, live, gapless, costs, summary = map(json.loads, done.stdout.splitlines())
    assert [(line["path"], line["mode"]) for line in lines] == [
        (name, mode) for name in PATHS for mode in ("gapless", "live")
    ]
    for line in [*lines, live, gapless]:
        assert line["mean_delay"] - line["optimum_constant"] == pytest.approx(
            line["above_constant"], abs=0.11
        )
        assert line["optimum_segments"] <= line["optimum_constant"]
        assert 0 <= line["late"] < 5
    assert (live["file"], gapless["file"]) == (str(recorded), str(recorded))
    assert summary["above_constant_optimum"]["live"].keys() == PATHS.keys()
    assert (summary["summary"], summary["quick"], summary["frames"]) == (True, True, 3000)
    for name in ("insert", "read", "read_scaled", "conceal"):
        assert summary["microseconds"][name] == costs["microseconds"][name]
        assert summary["microseconds"][name]["median"] > 0


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (None, "cannot read {}: No such file or directory"),
        (b"RIFF\xff\xfe", "{} is no text, so no recording of arrivals"),
        (
            b"hello\n",
            "{}:1: 'hello' is no JSON. record one with tenuto play --record-arrivals FILE",
        ),
        (RECORDING.encode(), "{} holds no two frames. record for longer"),
        (RECORDING.encode() + b"[0, 0, 100000]\n" * 21, "{} holds more than 2,000,000 frames"),
        (
            RECORDING.encode() + b"[0, 0, 5]\n[1e300, 5, 1]\n",
            "{}:3: 1e+300 s is more than a day. record one with tenuto play --record-arrivals FILE",
        ),
    ],
)
def test_playout_refuses_what_is_no_recording(
    tmp_path: Path, content: bytes | None, answer: str
) -> None:
    file = tmp_path / "some.jsonl"
    if content is not None:
        file.write_bytes(content)
    done = bench("playout", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == answer.format(file) + "\n"


def test_other_benches_take_no_files() -> None:
    done = bench("ring", "file", "--quick")
    assert (done.returncode, done.stderr) == (2, "The bench 'ring' takes no files.\n")


def test_the_optimum_of_all_and_of_segments() -> None:
    """Two segments of 5 s, the second 100 ms later, and one frame of each later still."""
    offsets = {n: (0.0 if n < 250 else 0.1) for n in range(500)} | {7: 0.5, 400: 0.3}
    frames = range(500)
    assert constant_delay(offsets, frames, 0) == 0.5
    assert constant_delay(offsets, frames, 1) == 0.3
    assert constant_delay(offsets, frames, 2) == 0.1
    assert constant_delay(offsets, frames, 252) == 0.0
    assert segment_delay(offsets, frames, 0) == pytest.approx(0.4)
    assert segment_delay(offsets, frames, 1) == pytest.approx(0.15)
    assert segment_delay(offsets, frames, 2) == pytest.approx(0.05)
    del offsets[3]
    # A frame that was lost is late at any delay.
    assert constant_delay(offsets, frames, 1) == 0.5
    assert constant_delay(offsets, frames, 2) == 0.3


def test_without_a_name_it_lists_what_there_is() -> None:
    done = bench()
    assert done.returncode == 0
    assert "ring " in done.stdout


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("rnig", "No bench is called 'rnig'. Did you mean 'ring'?\n"),
        ("x", f"No bench is called 'x'. There is: {', '.join(BENCHES)}.\n"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, answer: str) -> None:
    done = bench(name, "--quick")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", answer)


@pytest.mark.parametrize("mode", ["gapless", "live"])
def test_a_recording_from_far_within_a_session_gives_the_same_figures(mode: PlayoutMode) -> None:
    arrivals = path("gamma-30", 800, 7, 0.2)
    far = [(at, (1 << 62) + sequence) for at, sequence in arrivals]
    assert judge(far, mode) == judge(arrivals, mode)


def test_how_far_a_long_recording_is_played_is_told() -> None:
    parts: list[float] = []
    judge(path("clean", 5000, 1), "gapless", parts.append)
    assert parts == sorted(parts)
    assert len(parts) >= 4
    assert 0 < parts[0] < parts[-1] <= 1


def test_ctrl_c_ends_a_bench_without_a_word() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "bench", "ring"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as running:
        time.sleep(2.0)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert (running.returncode, said) == (130, "")


def test_a_reader_that_has_seen_enough_ends_a_bench_without_a_word() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "bench", "ring", "--quick"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read()
    assert (running.returncode, said) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bench", "ring", "--quick"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "cannot write standard output: No space left on device\n"
