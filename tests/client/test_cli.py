"""`tenuto play` and `tenuto speak`, as a user meets them."""

from __future__ import annotations

import asyncio
import io
import json
import re
import wave
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from tenuto.cli.report import LiveReport
from tenuto.cli.switches import Switches
from tenuto.client import (
    Failure,
    FailureKind,
    Resumed,
    TransportChosen,
    TransportFailed,
    Trust,
    open_stream,
)
from tenuto.media import AudioFormat, Frame
from tenuto.wire import End, Format, Gap
from tests.client.peer import (
    AUDIO,
    Asked,
    Out,
    frames,
    problem,
    records,
    sentence,
    whole,
)
from tests.client.shell import PCM, Run, Served, one_line


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_a_wav_file_that_others_can_open(
    served: Served, run: Run, tmp_path: Path, transport: str
) -> None:
    path = tmp_path / "a b.WAV"
    with served(whole(sentence(25))) as peer:
        result = run("play", peer.url(), "-o", path, "--transport", transport)
    assert (result.exit_code, result.output) == (0, "")
    assert path.stat().st_size == 44 + len(PCM)
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        assert file.readframes(100_000) == PCM
    assert peer.asked[0][0] == transport
    assert "lead=max" in peer.asked[0][1].path


def test_raw_samples_and_json(served: Served, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    with served(whole(sentence(25))) as peer:
        result = run("speak", "Hello", "--server", peer.url(path="/"), "-o", path, "--json")
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == PCM
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["event"] for line in lines] == [
        "transport-chosen",
        "format-announced",
        "finished",
        "summary",
    ]
    last = lines[-1]
    assert last["complete"] is True
    assert (last["frames"], last["samples"], last["seconds"]) == (25, 8000, 0.5)
    assert last["format"] == {"codec": "pcm_s16le", "rate": 16000, "channels": 1}
    assert last["timings"]["first_frame"] > 0
    assert (last["transport"], last["session"], last["error"]) == ("quic", "s-1", None)
    assert (last["switches"], last["switch_count"]) == ([], 0)


def test_speak_posts_the_text_from_standard_input(served: Served, run: Run, tmp_path: Path) -> None:
    with served(whole(sentence(1))) as peer:
        common = ("--server", peer.url(path=""), "-o", tmp_path / "a.wav")
        manner = ("--lang", "cmn", "--voice", "cmn+f3", "--speed", "120", "--pitch", "70")
        result = run("speak", "-", *manner, *common, input="你好\n".encode())
        assert result.exit_code == 0, result.output
        result = run("speak", "-", *common, input=b"caf\xe9")
        assert result.exit_code == 2
        assert "not UTF-8 at byte 3" in one_line(result)
        result = run("speak", "-", *common, input=b"x" * (4 * 1024 * 1024 + 1))
        assert result.exit_code == 2
        assert "4194304 bytes" in one_line(result)
    ((_, asked),) = peer.asked
    assert asked.method == "POST"
    assert asked.path == "/v1/speak"
    body = json.loads(asked.body)
    assert (body["text"], body["lang"], body["lead"]) == ("你好\n", "cmn", "max")
    assert (body["voice"], str(body["speed"]), str(body["pitch"])) == ("cmn+f3", "120", "70")


def test_a_session_is_played_by_its_id(served: Served, run: Run, tmp_path: Path) -> None:
    with served(whole(records(Format(AUDIO, 7), *frames(2, 7), End(9, 9 * 320)))) as peer:
        arguments = ("--server", peer.url(path="/"), "-o", tmp_path / "a.raw", "--lead", "0.5")
        result = run(
            "play", "a.B-1_2", "--from", "7", "--epoch", "0", "--listener", "me", *arguments
        )
    assert result.exit_code == 0, result.output
    path = "/v1/sessions/a.B-1_2/audio?from=7&epoch=0&listener=me&lead=0.5&mode=gapless"
    assert peer.asked[0][1].path == path


def test_what_the_url_says_is_left_alone(served: Served, run: Run, tmp_path: Path) -> None:
    path = "/v1/speak?lead=3&listener=me&mode=live&text=x"
    output = ("-o", tmp_path / "a.raw")
    with served(whole(sentence(1))) as peer:
        assert run("play", peer.url(path=path), *output).exit_code == 0
        assert run("play", peer.url(path=path), *output, "--lead", "max").exit_code == 0
    assert [asked.path for _, asked in peer.asked] == [
        path,
        "/v1/speak?listener=me&mode=live&text=x&lead=max",
    ]


def test_a_cut_leaves_what_came_and_fails(served: Served, run: Run, tmp_path: Path) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(records(Format(AUDIO, 0), *frames(10)))
        await out.cut()

    path = tmp_path / "a.wav"
    with served(script) as peer:
        result = run("play", peer.url(), "-o", path, "--json", "--patience", "0")
    assert result.exit_code == 1
    assert "cut before frame 10" in one_line(result)
    with wave.open(str(path)) as file:
        assert file.getnframes() == 3200
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["complete"] is False
    assert last["error"]["code"] == "cut"
    assert last["next"] == 10


@pytest.mark.parametrize("announced", [True, False])
def test_frames_that_never_came_are_counted_and_a_failure(
    served: Served, run: Run, tmp_path: Path, announced: bool
) -> None:
    missing = 2**32 if announced else 3
    gap = [Gap(1, missing)] if announced else []
    behind = missing + 1
    end = End(behind + 1, (behind + 1) * AUDIO.samples_per_frame)
    path = tmp_path / "a.raw"
    with served(
        whole(records(Format(AUDIO, 0), *frames(1), *gap, *frames(1, behind), end))
    ) as peer:
        result = run("play", peer.url(), "-o", path, "--json")
        plain = run("play", peer.url(), "-o", path)
    assert (result.exit_code, plain.exit_code) == (1, 1)
    assert f"but {missing} of its frames ({missing * 0.02:.2f} s) never came" in one_line(result)
    assert one_line(plain) == one_line(result)
    assert path.stat().st_size == 2 * AUDIO.frame_size  # what came is kept
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["frames"], last["gaps"], last["complete"]) == (2, missing, False)
    assert last["error"]["code"] == "gaps"


def test_whose_mistake_it_was_is_the_exit_status(served: Served, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    refusal = problem(400, code="bad-text", detail="the text is \x1b[31mempty\n", remedy="say more")
    with served(refusal) as peer:
        result = run("play", peer.url(), "-o", path)
    assert result.exit_code == 2
    assert one_line(result).endswith("say more")
    with served(problem(503, code="at-capacity", detail="full", remedy="wait")) as peer:
        result = run("play", peer.url(), "-o", path)
    assert (result.exit_code, one_line(result)) == (1, "tenuto: full. wait")
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plya"], "did you mean play?"),
        (["zzz"], "no command 'zzz'; there are certs, doctor, "),
        (["play"], "Missing argument"),
        (["play", "x", "--transport", "udp"], "--transport"),
        (["play", "x", "--lead", "soon"], "neither a number of seconds nor max"),
        (["play", "x", "--from", "-1"], "--from"),
        (["play", "x", "-o", "a.mp3"], ".wav or .raw"),
        (["play", "x", "-o", "/nowhere/a.wav"], "no folder /nowhere"),
        (["play", "x", "-o", "a\0.wav"], "no path"),
        (["play", "x", "-o", "a.raw", "--record-arrivals", "/nowhere/a"], "no folder /nowhere"),
        (["play", "x", "-o", "a.raw", "--record-arrivals", "/"], "/ is a folder"),
        (["speak", "x", "-o", "a.raw", "--record-arrivals", "\0"], "no path"),
        (["play", "x", "-o", "a.raw", "--mode", "both"], "--mode"),
        (["play", "x", "-o", "a.raw", "--ca", "/nowhere.pem"], "/nowhere.pem"),
        (["play", "x", "-o", "a.raw", "--ca", "c", "--insecure"], "contradict"),
        (["play", "a/b", "-o", "a.raw"], "neither a URL nor a session's id"),
        (["play", "..", "-o", "a.raw"], "neither a URL nor a session's id"),
        (["play", "http://localhost/", "-o", "a.raw"], "begins with http:"),
        (["speak", "caf\udce9", "-o", "a.raw"], "lone surrogate"),
        (["speak", "x", "--lang", "\udce9", "-o", "a.raw"], "lone surrogate"),
        (["speak", "x", "--server", "localhost", "-o", "a.raw"], "no https://"),
        (
            ["speak", "x", "--server", "https://h:1?x=1", "-o", "a.raw"],
            "has a query. write it like",
        ),
        (["speak", "-", "--server", "https://h:1/v1", "-o", "a.raw"], "has a path. write it like"),
        (["play", "s", "--server", "https://h:1/#x", "-o", "a.raw"], "has a fragment. write it"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_2(
    run: Run, arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in one_line(result)


def test_help_and_version(run: Run) -> None:
    for arguments in ("--help", "play --help", "speak --help"):
        result = run(*arguments.split())
        assert result.exit_code == 0
        assert "tenuto speak" in result.output or "tenuto play" in result.output
    assert run("--version").output.startswith("tenuto 0.")


def test_a_command_that_cannot_be_imported_says_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tenuto.commands]\nbroken = not_there.at_all:x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("broken", "--port", "1")
    assert result.exit_code == 2
    assert "the command broken cannot be loaded" in one_line(result)
    assert "cannot be loaded" in run("--help").output


def test_the_line_on_a_terminal_follows_the_stream(served: Served, trust: Trust) -> None:
    """What failed stays above it; a server's words cannot move the cursor."""
    screen = io.StringIO()
    report = LiveReport(Console(file=screen, force_terminal=True, width=120, height=5))
    failure = Failure("quic", FailureKind.TIMEOUT, "no answer \x1b[2J")

    async def listen(url: str) -> None:
        async with open_stream(url, trust=trust, on_event=report.event) as stream:
            with report:
                report.event(TransportFailed(failure))
                switches = Switches()
                report.playing(stream, Silence(), switches)
                switches.note(TransportChosen("quic", stream.peer, 0.0), 0.0)
                switches.note(Resumed("tcp", stream.peer, 1.0, 1, 0.5), 1.5)
                async for _ in stream:
                    pass

    with served(whole(sentence(25))) as peer:
        asyncio.run(listen(peer.url()))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "quic gave nothing: no answer \\x1b[2J" in shown
    assert "connecting ..." in shown
    for part in (
        "00:00.5",
        "  quic",
        "buffer 0.3 s",
        "0 missing of 25",
        "1 switch (the connection was lost)",
        f"127.0.0.1:{peer.port}",
    ):
        assert part in shown


class Silence:
    """A sink that holds a third of a second and does nothing."""

    buffered = 0.3
    account = None
    heard = None

    def flush(self, base: int) -> None: ...
    def pause(self, at: int) -> None: ...
    def resume(self) -> None: ...

    async def open(self) -> None: ...
    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None: ...
    async def finish(self) -> None: ...
    async def abandon(self) -> None: ...


def test_a_stream_that_was_cut_goes_on_and_says_so(
    served: Served, run: Run, tmp_path: Path
) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(tenuto_session="s-1")
        if "from=10" in asked.path:
            await out.send(records(Format(AUDIO, 10), *frames(15, 10), End(25, 8000)))
            await out.end()
            return
        await out.send(records(Format(AUDIO, 0), *frames(10)))
        await out.cut()

    path = tmp_path / "a.raw"
    with served(script) as peer:
        url = peer.url(path="/v1/speak?text=x&token=secret")
        result = run("play", url, "-o", path, "--json", "--transport", "tcp")
        assert [asked.headers.get("authorization") for _, asked in peer.asked] == [
            "Bearer secret", "Bearer secret"
        ]  # fmt: skip
    assert result.exit_code == 0
    assert path.read_bytes() == PCM
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    told = [line["event"] for line in lines]
    assert [name for name in told if name in ("interrupted", "retrying", "resumed")] == [
        "interrupted", "retrying", "resumed"
    ]  # fmt: skip
    resumed = lines[told.index("resumed")]
    assert resumed["transport"] == "tcp"
    assert 0 <= resumed["handshake"] <= resumed["gap"]
    assert "secret" not in result.output


def test_a_token_is_shown_in_no_error(run: Run) -> None:
    result = run("play", "http://localhost/v1/speak?text=x&token=secret", "-o", "a.raw")
    assert result.exit_code == 2
    assert "token=***" in one_line(result)
    assert "secret" not in result.output
