"""`--record-arrivals`: when the frames came, beside whatever takes them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tenuto.cli.recorder import ArrivalRecorder
from tenuto.client.arrivals import Arrivals, ArrivalsHeader, read_arrivals
from tenuto.errors import OperatorError
from tenuto.media import Frame
from tenuto.wire import End, Format, Gap
from tests.client.authority import Authority
from tests.client.peer import AUDIO, Asked, Out, frames, records, sentence, whole
from tests.client.shell import Run, Served, endless, one_line

HEADER = ArrivalsHeader("quic", "live", 0.2, 5, 16000, 1, "2026-01-02T03:04:05.678+00:00")


def read(path: Path) -> Arrivals:
    with path.open(encoding="ascii") as file:
        return read_arrivals(file, path.name)


@pytest.mark.parametrize("output", ["a.raw", os.devnull])
def test_each_read_is_an_event(served: Served, run: Run, tmp_path: Path, output: str) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(records(Format(AUDIO, 3, chunk_frames=2), *frames(2, 3)))
        for first in (5, 6, 7):
            await out.send(records(*frames(1, first)))
            await asyncio.sleep(0.1)
        await out.send(records(Gap(8, 2), *frames(3, 10), End(13, 8 * 320)))
        await out.end()

    path = tmp_path / "arrivals"
    with served(script) as peer:
        result = run(
            *("play", peer.url(), "-o", tmp_path / output, "--record-arrivals", path),
            *("--mode", "live", "--transport", "tcp", "--json"),
        )
    assert result.exit_code == 1  # for the gap
    recorded = read(path)
    header = recorded.header
    assert (header.transport, header.mode, header.lead) == ("tcp", "live", 0.2)
    assert (header.chunk_frames, header.rate, header.channels) == (2, 16000, 1)
    runs = [(event.first, event.count) for event in recorded.events]
    assert runs[0] in [(3, 2), (3, 3)]
    assert runs[-1] == (10, 3)
    assert sum(count for _, count in runs) == 8
    assert recorded.events[-1].at - recorded.events[0].at == pytest.approx(0.3, abs=0.15)
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["arrivals"] == {"events": len(runs), "dropped": 0}


@pytest.mark.parametrize(
    ("arguments", "lead"),
    [(["--lead", "1.5"], 1.5), (["--lead", "max"], None), ([], None), (["--mode", "live"], 0.2)],
)
def test_the_lead_is_what_was_asked_for(
    served: Served, run: Run, tmp_path: Path, arguments: list[str], lead: float | None
) -> None:
    path = tmp_path / "arrivals"
    with served(whole(sentence(3))) as peer:
        for url, expected in [(peer.url(), lead), (peer.url() + "&lead=0.75", None)]:
            if "lead=" in url and arguments != []:
                continue
            run("play", url, "-o", tmp_path / "a.raw", "--record-arrivals", path, *arguments)
            expected = 0.75 if "lead=" in url else expected
            assert read(path).header.lead == expected


def test_ctrl_c_leaves_a_whole_file(served: Served, authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "arrivals"
    with served(endless) as peer:
        command = [sys.executable, "-m", "tenuto.cli", "play", peer.url(), "-o", os.devnull]
        command += ["--ca", str(authority.ca), "--record-arrivals", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as play:
            deadline = time.monotonic() + 20
            while not (path.exists() and path.stat().st_size > 500):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            play.send_signal(signal.SIGINT)
            assert play.wait(10) == 130
    assert path.read_text().endswith("\n")
    events = read(path).events
    assert len(events) > 3
    following = [event.first + event.count for event in events]
    assert [event.first for event in events[1:]] == following[:-1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
def test_a_full_disk_is_one_line(served: Served, run: Run, tmp_path: Path) -> None:
    with served(whole(sentence(3))) as peer:
        result = run("play", peer.url(), "-o", tmp_path / "a.raw", "--record-arrivals", "/dev/full")
    assert result.exit_code == 2
    assert "cannot write /dev/full: No space left" in one_line(result)
    assert "--record-arrivals" in one_line(result)


def test_nobody_is_asked_where_it_cannot_be_written(
    served: Served, run: Run, tmp_path: Path
) -> None:
    with served(whole(sentence(3))) as peer:
        result = run("play", peer.url(), "-o", tmp_path / "a.raw", "--record-arrivals", tmp_path)
    assert result.exit_code == 2
    assert "is a folder" in one_line(result)
    assert not peer.asked


def test_what_a_reader_would_refuse_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "arrivals"
    times = iter([5.0, 5.0, 5.02, 5.04, 5.06])
    with ArrivalRecorder(str(path), HEADER, most=4, clock=lambda: next(times)) as recorder:
        for n in range(2):
            recorder.add([Frame(n, b"", 0)])
        recorder.add([Frame(2, b"", 0), Frame(5, b"", 0), Frame(6, b"", 0)])
        recorder.add([Frame(7, b"", 0)])
    assert (recorder.events, recorder.dropped) == (3, 2)
    recorded = read(path)
    assert recorded.header == HEADER
    assert [(event.at, event.first, event.count) for event in recorded.events] == [
        (0.0, 0, 1),
        (0.02, 1, 1),
        (0.04, 2, 1),
    ]
    times = iter([5.0, 5.0, 5.1, 86_405.1])
    with ArrivalRecorder(str(path), HEADER, clock=lambda: next(times)) as recorder:
        for sequence in (7, 20_000_000, 8):
            recorder.add([Frame(sequence, b"", 0)])
    assert (recorder.events, recorder.dropped) == (1, 2)
    assert [event.first for event in read(path).events] == [7]
    with pytest.raises(OperatorError, match="no such file|No such file"):
        ArrivalRecorder(str(tmp_path / "no" / "file"), HEADER)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.raw"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("option", ["-o", "--record-arrivals"])
def test_a_pipe_that_nobody_reads_is_refused(
    served: Served, run: Run, tmp_path: Path, pipe: Path, option: str
) -> None:
    other = [] if option == "-o" else ["-o", tmp_path / "a.raw"]
    with served(whole(sentence(3))) as peer:
        result = run("play", peer.url(), option, pipe, *other)
    assert result.exit_code == 2
    assert f"nobody reads the named pipe {pipe}. start its reader first" in one_line(result)


@pytest.mark.parametrize("ending", ["raw", "wav"])
def test_pipes_get_what_files_would(served: Served, run: Run, tmp_path: Path, ending: str) -> None:
    paths = [tmp_path / f"sound.{ending}", tmp_path / "arrivals"]
    readers = []
    for path in paths:
        os.mkfifo(path)
        readers.append(subprocess.Popen(["cat", path], stdout=subprocess.PIPE))
    time.sleep(0.3)
    with served(whole(sentence(25))) as peer:
        result = run("play", peer.url(), "-o", paths[0], "--record-arrivals", paths[1])
        assert (result.exit_code, result.output) == (0, "")
        url = peer.url()
        assert run("play", url, "-o", tmp_path / f"file.{ending}").exit_code == 0
    sound, arrivals = (reader.communicate(timeout=5)[0] for reader in readers)
    file = (tmp_path / f"file.{ending}").read_bytes()
    head = 44 if ending == "wav" else 0  # a pipe's says "unknown" for the size
    assert sound[head:] == file[head:]
    assert sound[:4] == file[:4]
    assert sum(e.count for e in read_arrivals(arrivals.decode().splitlines(True), "x").events) == 25


def test_a_reader_that_leaves_a_pipe_is_one_line(served: Served, run: Run, pipe: Path) -> None:
    with subprocess.Popen(["head", "-c", "10", pipe], stdout=subprocess.DEVNULL):
        time.sleep(0.3)
        with served(endless) as peer:
            result = run("play", peer.url(), "-o", pipe)
    assert result.exit_code == 2
    assert f"cannot write {pipe}: Broken pipe" in one_line(result)


@pytest.mark.parametrize("option", ["-o", "--record-arrivals"])
def test_a_reader_that_reads_nothing_does_not_stop_ctrl_c(
    served: Served, authority: Authority, pipe: Path, option: str
) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    command = [sys.executable, "-m", "tenuto.cli", "play", option, str(pipe)]
    command += [] if option == "-o" else ["-o", os.devnull]
    with served(endless) as peer:
        command += [peer.url(), "--ca", str(authority.ca), "--lead", "max"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as play:
            time.sleep(3.0)
            assert play.poll() is None
            play.send_signal(signal.SIGINT)
            assert play.wait(5) == 130
    os.close(reader)


def test_what_a_pipe_has_no_room_for_is_counted(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with ArrivalRecorder(str(pipe), HEADER) as recorder:
        for n in range(5000):
            recorder.add([Frame(n, b"", 0)])
        assert recorder.events + recorder.dropped == 5000
        assert recorder.dropped > 100
    data = b""
    while part := os.read(reader, 65536):
        data += part
    os.close(reader)
    recorded = read_arrivals(data.decode().splitlines(True), "x")
    assert len(recorded.events) == recorder.events


def test_one_place_for_both_is_refused(served: Served, run: Run, tmp_path: Path) -> None:
    sound, other, hard = tmp_path / "a.raw", tmp_path / "b", tmp_path / "c"
    new = tmp_path / "new.raw"
    (tmp_path / "folder").symlink_to(tmp_path)
    sound.write_bytes(b"old")
    other.symlink_to(sound)
    hard.hardlink_to(sound)
    for output, arrivals in [
        (sound, sound),
        (sound, other),
        (sound, hard),
        (new, new),
        (new, tmp_path / "folder" / "new.raw"),
    ]:
        result = run("play", "https://localhost:9/x", "-o", output, "--record-arrivals", arrivals)
        assert result.exit_code == 2
        assert f"both write {arrivals}. name two files" in one_line(result)
    assert sound.read_bytes() == b"old"
    with sound.open("wb") as standard:
        command = [sys.executable, "-m", "tenuto.cli", "play", "https://localhost:9/x", "-o", "-"]
        done = subprocess.run(
            [*command, "--record-arrivals", sound],
            stdout=standard,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert b"both write" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--record-arrivals", "-"], "--record-arrivals does not write to standard output"),
        (["--record-arrivals", ""], "--record-arrivals is empty. name a file"),
        (["-o", ""], "--output is empty. name a file"),
    ],
)
def test_names_that_are_none(run: Run, arguments: list[str], answer: str) -> None:
    result = run("play", "https://localhost:9/x", *arguments)
    assert result.exit_code == 2
    assert answer in one_line(result)
