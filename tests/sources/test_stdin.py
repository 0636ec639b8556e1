"""Standard input as a source, with pipes of this process."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tenuto.errors import ErrorCode, OperatorError, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources import StandardInput, StdinSource, parse_stdin_format, stdin
from tenuto.sources.counting import numbered_run
from tenuto.sources.pump import LIVE_SECONDS, READ_AHEAD
from tests.sources.listening import hear
from tests.sources.test_wav_stream import MONO, ONE, STEREO, TWO, mono, wav

KERNEL = 64 * 1024
"""What a pipe itself holds, on Linux."""


@dataclass
class Pipe:
    """Both ends of a pipe; `write` waits like any writer, `offer` does not."""

    reader: int
    writer: int
    open: bool = field(default=True)

    def offer(self, data: bytes) -> int:
        os.set_blocking(self.writer, False)
        try:
            return os.write(self.writer, data)
        except BlockingIOError:
            return 0

    def write(self, data: bytes) -> None:
        os.set_blocking(self.writer, True)
        while data:
            data = data[os.write(self.writer, data) :]

    def end(self) -> None:
        if self.open:
            self.open = False
            os.close(self.writer)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe(*os.pipe())
    yield made
    # The reading end stays: its thread may look at it once more.
    made.end()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_glued_files_are_one_stream_with_changes_of_format(pipe: Pipe) -> None:
    pipe.write(wav(ONE) + wav(TWO, STEREO) + wav(ONE))
    pipe.end()
    source = await StandardInput("pausable", descriptor=pipe.reader).open()
    assert (source.kind, source.format, source.pausable, source.patience) == (
        ("stdin", MONO, True, None)
    )
    heard = await hear(source)
    assert heard.audio == ONE + TWO + ONE
    assert heard.formats == [(STEREO, len(ONE)), (MONO, len(ONE) + len(TWO))]


async def test_raw_samples_need_no_header(pipe: Pipe) -> None:
    pipe.write(TWO + b"\1")
    pipe.end()
    source = await StandardInput("pausable", STEREO, descriptor=pipe.reader).open()
    assert source.format == STEREO
    assert (await hear(source)).audio == TWO


async def test_after_its_end_it_is_refused(pipe: Pipe) -> None:
    pipe.write(wav(ONE))
    pipe.end()
    standard = StandardInput("pausable", descriptor=pipe.reader)
    await hear(await standard.open())
    for _ in range(2):
        with pytest.raises(RequestError, match="standard input has ended") as refusal:
            await standard.open()
        assert refusal.value.code is ErrorCode.SOURCE_ENDED


@pytest.mark.parametrize("mode", ["live", "pausable"])
@pytest.mark.parametrize("format", [None, STEREO])
async def test_an_empty_one_is_an_empty_stream_once(mode: str, format: AudioFormat | None) -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    standard = StandardInput(mode, format, descriptor=descriptor)
    source = await standard.open()
    assert source.format == (format or AudioFormat())
    assert (await hear(source)).audio == b""
    with pytest.raises(RequestError, match="has ended"):
        await standard.open()


async def test_the_writer_waits_for_who_can_be_waited_for(pipe: Pipe) -> None:
    standard = StandardInput("pausable", MONO, descriptor=pipe.reader)
    written = 0
    for _ in range(50):
        while taken := pipe.offer(bytes(4096)):
            written += taken
        await asyncio.sleep(0.002)
    assert READ_AHEAD <= written <= READ_AHEAD + KERNEL
    assert standard.tally.read_bytes <= READ_AHEAD
    stream = (await standard.open()).stream()
    taken = 0
    while taken < 20_000:
        run = await anext(stream)
        assert isinstance(run, bytes)
        taken += len(run)
    await until(lambda: pipe.offer(b"\0\0") > 0)
    await stream.aclose()
    assert standard.tally.dropped_bytes == standard.tally.skipped_bytes == 0


async def test_a_paused_session_leaves_the_rest_to_the_next(pipe: Pipe) -> None:
    pipe.write(numbered_run(0, 30 * 640, 640))
    standard = StandardInput("pausable", MONO, descriptor=pipe.reader)
    await until(lambda: standard.tally.read_bytes == 30 * 640)
    pipe.write(numbered_run(30 * 640, 30 * 640, 640))
    stream = (await standard.open()).stream()
    first = await anext(stream)
    assert isinstance(first, bytes)
    await stream.aclose()
    pipe.end()
    rest = (await hear(await standard.open())).audio
    assert first + rest == numbered_run(0, 60 * 640, 640)


async def test_what_a_session_did_not_take_goes_to_the_next(pipe: Pipe) -> None:
    data = numbered_run(0, 100 * 640, 640)
    pipe.write(data)
    pipe.end()
    standard = StandardInput("pausable", MONO, descriptor=pipe.reader)
    await until(lambda: standard.tally.read_bytes == len(data))
    stream = (await standard.open()).stream()
    first = await anext(stream)
    assert isinstance(first, bytes)
    assert len(first) <= MONO.bytes_per_second // 10
    await stream.aclose()
    heard = await hear(await standard.open())
    assert first + heard.audio == data
    assert max(heard.runs) <= MONO.bytes_per_second // 10


async def test_a_run_behind_a_change_of_format_is_given_back(pipe: Pipe) -> None:
    pipe.write(wav(ONE) + wav(TWO, STEREO))
    pipe.end()
    standard = StandardInput("pausable", descriptor=pipe.reader)
    stream = (await standard.open()).stream()
    assert [await anext(stream), await anext(stream)] == [ONE, STEREO]
    await stream.aclose()
    source = await standard.open()
    assert source.format == STEREO
    heard = await hear(source)
    assert (heard.audio, heard.formats) == (TWO, [])


async def test_no_more_is_held_than_its_bound_however_much_it_grows(pipe: Pipe) -> None:
    # 16 bytes are heard for each that is read.
    standard = StandardInput("pausable", descriptor=pipe.reader)
    pipe.write(mono(bytes(500_000), 1001, 8)[:44])
    sent = 0
    for _ in range(50):
        sent += pipe.offer(b"\x80" * 4096)
        assert standard.held <= READ_AHEAD
        await asyncio.sleep(0.002)
    assert standard.held > READ_AHEAD // 2
    assert standard.tally.read_bytes <= READ_AHEAD // 16 + 2 * 4096
    hearing = asyncio.create_task(hear(await standard.open()))
    await asyncio.to_thread(pipe.write, b"\x80" * (500_000 - sent))
    pipe.end()
    assert len((await hearing).audio) == 2 * round(500_000 * 8000 / 1001)


async def test_who_waits_for_a_header_is_told_that_none_is_waited_for(pipe: Pipe) -> None:
    standard = StandardInput("pausable", descriptor=pipe.reader)
    waiting = [asyncio.create_task(standard.open()) for _ in range(3)]
    await asyncio.sleep(0.02)
    standard.refuse(RequestError(ErrorCode.DRAINING, "about to stop"))
    async with asyncio.timeout(1):
        for each in waiting:
            with pytest.raises(RequestError, match="about to stop"):
                await each
        with pytest.raises(RequestError, match="about to stop"):
            await standard.open()


async def test_who_will_not_wait_is_answered_by_what_is_known(pipe: Pipe) -> None:
    standard = StandardInput("pausable", descriptor=pipe.reader)
    assert (await standard.open(wait=False)).format == AudioFormat()
    pipe.write(wav(TWO, STEREO))
    await standard.open()
    assert (await standard.open(wait=False)).format == STEREO
    pipe.end()
    await hear(await standard.open())
    with pytest.raises(RequestError, match="has ended"):
        await standard.open(wait=False)


async def test_of_two_takers_the_later_takes_all(pipe: Pipe) -> None:
    standard = StandardInput("pausable", MONO, descriptor=pipe.reader)
    one, two = await standard.open(), await standard.open()
    waiting = asyncio.create_task(hear(one))
    await asyncio.sleep(0.02)
    stream = two.stream()
    later = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.02)
    assert (await waiting).audio == b""
    pipe.write(ONE)
    assert await later == ONE
    await stream.aclose()


async def test_a_live_writer_never_waits(pipe: Pipe) -> None:
    standard = StandardInput("live", descriptor=pipe.reader)
    head = wav(b"", size=0xFFFFFFFF)
    async with asyncio.timeout(5):
        await asyncio.to_thread(pipe.write, head + bytes(2_000_000))
    await until(lambda: standard.tally.skipped_bytes == 2_000_000)
    source = await standard.open()
    assert (source.format, source.pausable) == (MONO, False)
    stream = source.stream()
    first = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.02)
    pipe.write(ONE)
    assert await first == ONE  # What came before is not heard.
    async with asyncio.timeout(5):
        await asyncio.to_thread(pipe.write, numbered_run(0, 1_000_000, 640))
    pipe.end()
    await until(lambda: standard.tally.read_bytes == len(head) + 3_000_000 + len(ONE))
    runs = [run async for run in stream if isinstance(run, bytes)]
    held = b"".join(runs)
    assert len(held) <= LIVE_SECONDS * MONO.bytes_per_second
    assert held == numbered_run(0, 1_000_000, 640)[-len(held) :]
    assert standard.tally.dropped_bytes == 1_000_000 - len(held)
    with pytest.raises(RequestError, match="has ended"):
        await standard.open()


async def test_a_live_one_that_nobody_heard_says_how_to_be_heard(pipe: Pipe) -> None:
    standard = StandardInput("live", MONO, descriptor=pipe.reader)
    pipe.write(ONE)
    pipe.end()
    await until(lambda: standard.tally.skipped_bytes == len(ONE))
    await asyncio.sleep(0.05)
    with pytest.raises(RequestError, match="--stdin pausable"):
        await standard.open()


async def test_a_mislabelled_live_one_is_told_once_a_session(pipe: Pipe) -> None:
    told: list[tuple[int, float]] = []
    standard = StandardInput(
        "live",
        MONO,
        descriptor=pipe.reader,
        on_off_pace=lambda announced, measured: told.append((announced, measured)),
    )
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.05):
            pipe.write(bytes(4410))  # 44,100 Hz

    writer = threading.Thread(target=write)
    writer.start()
    for session in (1, 2):
        stream = (await standard.open()).stream()
        async with asyncio.timeout(10):
            while len(told) < session:
                await anext(stream)
        await anext(stream)
        await stream.aclose()
    done.set()
    writer.join()
    assert standard.tally.off_pace == len(told) == 2
    assert all(announced == 16000 and 24_000 < rate < 60_000 for announced, rate in told)


@pytest.mark.parametrize("mode", ["live", "pausable"])
async def test_garbage_is_named_to_each_who_asks(pipe: Pipe, mode: str) -> None:
    standard = StandardInput(mode, descriptor=pipe.reader)
    pipe.write(b"Nobody sings here.\n" * 10)
    for _ in range(2):
        with pytest.raises(RequestError, match="standard input is text") as refusal:
            await standard.open()
        assert refusal.value.code is ErrorCode.UNSUPPORTED_AUDIO
    if mode == "live":
        async with asyncio.timeout(5):
            await asyncio.to_thread(pipe.write, bytes(500_000))


async def test_garbage_later_fails_the_session_after_what_was_heard(pipe: Pipe) -> None:
    standard = StandardInput("pausable", descriptor=pipe.reader)
    pipe.write(wav(ONE) + b"\xff\xfe no header")
    pipe.end()
    heard = b""
    with pytest.raises(SourceError, match="which is no WAV data") as failure:
        async for run in (await standard.open()).stream():
            assert isinstance(run, bytes)
            heard += run
    assert heard == ONE
    assert "write WAV files" in failure.value.remedy
    with pytest.raises(RequestError, match="has ended .*no WAV data"):
        await standard.open()


async def test_a_descriptor_that_fails_later_is_told_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with accepted:
        standard = StandardInput("pausable", MONO, descriptor=accepted.fileno())
        source = await standard.open()
        # A reset is an error, where a mere end is none.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with pytest.raises(SourceError, match="cannot be read: Connection reset") as failure:
            await hear(source)
    assert "with something on its standard input" in failure.value.remedy


async def test_a_writer_that_says_nothing_is_not_waited_for(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdin, "HEADER_PATIENCE", 0.05)
    standard = StandardInput("pausable", descriptor=pipe.reader)
    pipe.write(b"RIFF")
    with pytest.raises(RequestError, match="has not begun") as refusal:
        await standard.open()
    assert refusal.value.code is ErrorCode.SOURCE_FAILED
    pipe.write(wav(ONE)[4:])
    pipe.end()
    assert (await hear(await standard.open())).audio == ONE


async def test_a_pipe_that_does_not_block_is_read_all_the_same(pipe: Pipe) -> None:
    os.set_blocking(pipe.reader, False)
    standard = StandardInput("pausable", MONO, descriptor=pipe.reader)
    source = await standard.open()
    hearing = asyncio.create_task(hear(source))
    await asyncio.sleep(0.05)
    pipe.write(ONE)
    pipe.end()
    assert (await hearing).audio == ONE


async def test_what_can_give_nothing_is_refused_at_the_start(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    refused = [
        (terminal, "is a terminal"),
        (os.open(tmp_path, os.O_RDONLY), "is a directory"),
        (os.open(os.devnull, os.O_WRONLY), "Bad file descriptor"),
    ]
    if sys.platform == "linux":
        refused.append((os.eventfd(1), "is no pipe, file, socket or device"))
    for descriptor, found in refused:
        with pytest.raises(OperatorError, match=f"{found}.*tenuto serve --stdin"):
            StandardInput("live", descriptor=descriptor)
        os.close(descriptor)
    os.close(master)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("auto", None),
        ("16000", AudioFormat(16000)),
        ("48000:2", AudioFormat(48000, 2)),
        ("8000:8", AudioFormat(8000, 8)),
        ("192000:2", AudioFormat(192000, 2)),
    ],
)
def test_a_format_is_a_rate_and_channels(text: str, format: AudioFormat | None) -> None:
    assert parse_stdin_format(text) == format


@pytest.mark.parametrize(
    ("text", "why", "remedy"),
    [
        *((text, "", "give auto or RATE") for text in ("", "wav", "16000:", "-1", "1e4")),
        ("16000:9", "9 channels", "give 1 to 8"),
        ("16000:0", "0 channels", "give 1 to 8"),
        ("11025", "not whole samples", "divisible by 50"),
        ("50", "50 samples/s", "give 8000 to 192000"),
        ("7950", "7950 samples/s", "give 8000 to 192000"),
        ("192050", "192050 samples/s", "give 8000 to 192000"),
        ("192000:8", "of 8 channels at 192000 Hz are 61440 bytes", "16381 fit a record"),
    ],
)
def test_a_bad_format_is_named(text: str, why: str, remedy: str) -> None:
    with pytest.raises(OperatorError, match=f"of standard input.*{why}") as refusal:
        parse_stdin_format(text)
    assert remedy in refusal.value.remedy
    assert "255" not in str(refusal.value)


def test_sources_are_told_apart() -> None:
    one, two = (StdinSource(MONO, True, None) for _ in range(2))  # type: ignore[arg-type]
    assert one != two
