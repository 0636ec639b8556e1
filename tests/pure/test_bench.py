import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import BENCHES

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
