"""Standard streams that are closed, full or without a reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.netem.outer import Outer

STREAMS = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">/dev/full"]


def redirected(how: str) -> list[str]:
    """What goes before a command to start it with such streams."""
    return ["sh", "-c", f'exec "$@" {how}', "sh"]


@pytest.mark.parametrize("how", STREAMS)
def test_the_command_has_its_status_and_the_report_is_written(
    outer: Outer, tmp_path: Path, how: str
) -> None:
    report = tmp_path / "report.json"
    done = outer.netem(
        *("run", "clear", "--json", str(report), "--"),
        *("sh", "-c", "ping -qc3 -i0.01 198.18.0.1 >/dev/null 2>/dev/null && exit 3"),
        before=redirected(how),
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    told = json.loads(report.read_text())
    assert told["status"] == 3
    assert told["measured"]["up"]["offered"] == 3


def test_the_command_finds_closed_what_was_closed(outer: Outer) -> None:
    done = outer.netem(
        "run", "clear", "--", "sh", "-c", "echo hi || exit 1", before=redirected(">&-")
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "I/O error" in done.stderr or "Bad file descriptor" in done.stderr


def test_nobody_reads_the_summary(outer: Outer) -> None:
    run = outer.start("run", "clear", "--", "sh", "-c", "exit 3")
    assert run.stderr is not None
    run.stderr.close()
    assert run.wait(20) == 3
    assert run.stdout is not None
    run.stdout.close()


@pytest.mark.parametrize(
    "arguments", [("list",), ("show", "3g"), ("show", "3g", "--json"), ("probe",), ("--help",)]
)
def test_an_answer_that_cannot_be_written_is_a_failure(
    outer: Outer, arguments: tuple[str, ...]
) -> None:
    done = outer.netem(*arguments, before=redirected(">/dev/full"))
    assert done.returncode == 125
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    assert outer.netem(*arguments, before=redirected(">/dev/full 2>&1")).returncode == 125


def test_whoever_reads_the_first_lines_only_is_no_failure_to_speak_of(outer: Outer) -> None:
    run = outer.start("list")
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == b""
    assert run.wait(20) == 1
    run.stderr.close()


def test_wrong_usage_that_nobody_can_be_told_of(outer: Outer) -> None:
    done = outer.netem("run", "no-such", "--", "true", before=redirected("2>/dev/full"))
    assert done.returncode == 2
