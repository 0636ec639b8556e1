"""What is asked wrongly, and what cannot be here: one line that says so, before it is measured."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from bench.lab import session
from bench.lab.folder import Folder
from bench.lab.interruption import Interruption
from bench.lab.record import Results, Setting
from tenuto.cli.main import cli

SETTING = Setting(
    modes=(),
    profiles=(),
    seeds=(1,),
    seconds=1.0,
    frame_size=640,
    command="tenuto lab",
    started="2026-11-30T20:00:00+00:00",
    versions={},
    driver="tun",
)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said on standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["lab", *arguments])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "rtt80-los5"], 'did you mean "rtt80-loss5"'),
        (["--profile", "no.toml"], "no.toml: cannot read it: there is no such file"),
        (["--mode", "quic-steam"], "no mode is called 'quic-steam'. did you mean quic-stream?"),
        (["--seeds", "0"], "Invalid value for '--seeds': 0 is not in the range"),
        (["--seconds", "nan"], "Invalid value for '--seconds': nan is no number of seconds"),
        (["--seconds", "0.1"], "Invalid value for '--seconds'"),
        (["--seeds", "1000", "--seconds", "600"], "keep 240,000,000 frames, of 5,000,000 at most"),
        (["--output", ""], "an empty path"),
        (["--from", "x.json", "--quick"], "--from reports on what was measured"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_two_profiles_of_one_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "rtt80.toml"
    own.write_text('extends = "clear"\n', encoding="utf-8")
    words = refused(capsys, "--profile", "rtt80", "--profile", str(own))
    assert "two profiles are called rtt80. rename one of the files" in words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"{", "it is no JSON"),
        (b"[1]", "it holds no results of the lab"),
        (b"\xff", "it is no UTF-8 text (byte 0)"),
        (b'{"tenuto_lab": 99}', "its format is not 1"),
        (b'{"tenuto_lab": 1, "setting": []}', "setting is [], no object"),
    ],
    ids=["nothing", "half", "json", "bytes", "newer", "parts"],
)
def test_results_that_are_none(
    content: bytes | None, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = tmp_path / "results.json"
    if content is not None:
        source.write_bytes(content)
    assert words in refused(capsys, "--from", str(source))
    assert not (tmp_path / "report.html").exists()


def test_a_pipe_is_not_waited_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "it is no plain file" in refused(capsys, "--from", str(tmp_path / "pipe"))


class TestReport:
    """Written to its end at the first signal, given up at the second; never half of it."""

    @pytest.fixture
    def rendered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def page(results: Results) -> str:
            signal.raise_signal(signal.SIGINT)
            return "<!doctype html>"

        monkeypatch.setattr("bench.lab.report.page", page)
        monkeypatch.setattr("bench.lab.report.summary", lambda results, width: "in short")

    @pytest.mark.usefixtures("rendered")
    @pytest.mark.parametrize("before", [0, 1])
    def test_signals_while_rendering(
        self, before: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        with Interruption() as interruption:
            for _ in range(before):
                signal.raise_signal(signal.SIGTERM)
            folder = Folder(tmp_path, interruption, fresh=False)
            session.Report(Results(setting=SETTING), folder, interruption).write(as_json=False)
        out, err = capsys.readouterr()
        assert out == "in short\n"
        if before:
            assert list(tmp_path.iterdir()) == []
            assert "no report was written: `tenuto lab --from" in err
        else:
            assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_who_reads_the_output_may_be_gone_but_not_the_report(tmp_path: Path) -> None:
    source = tmp_path / "results.json"
    source.write_text(Results(setting=SETTING).to_json(), encoding="utf-8")
    readable, written = os.pipe()
    os.close(readable)
    done = subprocess.run(
        [sys.executable, "-m", "bench.lab", "--from", str(source), "--json"],
        stdout=written,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(written)
    assert (done.returncode, done.stderr) == (1, b"")
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("arguments", [["lab"], ["lab", "--help"], ["lab", "--quick", "x"]])
def test_without_a_clone_it_says_where_the_lab_is(tmp_path: Path, arguments: list[str]) -> None:
    shutil.copytree(Path(tenuto.__file__).parent, tmp_path / "tenuto")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tenuto.cli", *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tenuto: the loss lab is not part of an installed package. "
        "have it from a clone of Tenuto's repository: pip install -e . in there\n"
    )
