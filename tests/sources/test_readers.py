"""Files that do not open or do not go on: whoever else listens, and the process, do not wait."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tenuto.daemons import DaemonExecutor, DaemonPool
from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import MediaFolder, Readers, open_file
from tenuto.sources.readers import GivenUp
from tests.sources.listening import hear
from tests.support.wavs import chunk, fmt, riff, wav


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hangs in a test goes on when it is over."""
    event = threading.Event()
    yield event
    event.set()


def hanging(gate: threading.Event) -> Callable[[GivenUp], None]:
    def work(given_up: GivenUp) -> None:
        gate.wait(30)

    return work


async def code_of(call: asyncio.Task[None]) -> ErrorCode:
    with pytest.raises(RequestError) as refusal:
        await call
    assert refusal.value.remedy
    return refusal.value.code


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_file_that_does_not_open_is_given_up_and_told(gate: threading.Event) -> None:
    readers = Readers(opening=0.2)
    seen: list[bool] = []

    def work(given_up: GivenUp) -> None:
        gate.wait(30)
        seen.append(given_up())

    with pytest.raises(RequestError, match=r"'a.wav' did not open within 0.2 s") as refusal:
        await readers.open(work, "'a.wav'")
    assert refusal.value.code is ErrorCode.SOURCE_FAILED
    assert (readers.tally.timed_out, readers.busy) == (1, 1)
    gate.set()
    await until(lambda: readers.busy == 0)
    assert seen == [True]


async def test_beyond_the_bound_files_are_refused_and_do_not_queue(gate: threading.Event) -> None:
    readers = Readers(most_opening=8, opening=20, place=0.3)
    calls = [asyncio.create_task(readers.open(hanging(gate), "'a.wav'")) for _ in range(8)]
    await until(lambda: readers.busy == 8)
    waiting = asyncio.create_task(readers.open(hanging(gate), "'b.wav'"))
    assert await code_of(waiting) is ErrorCode.AT_CAPACITY
    await asyncio.sleep(1.0)
    began = time.monotonic()
    at_once = asyncio.create_task(readers.open(hanging(gate), "'c.wav'"))
    assert await code_of(at_once) is ErrorCode.AT_CAPACITY
    assert time.monotonic() - began < 0.2
    assert (readers.busy, readers.tally.refused) == (8, 2)
    # Files that are open already are read on meanwhile.
    assert await readers.read(lambda: b"run") == b"run"
    gate.set()
    await asyncio.gather(*calls)
    assert await readers.open(lambda given_up: 7, "'d.wav'") == 7


async def test_while_all_reading_hangs_no_file_is_opened(gate: threading.Event) -> None:
    readers = Readers(most_reading=3)
    reads = [asyncio.create_task(readers.read(lambda: gate.wait(30))) for _ in range(3)]
    await until(lambda: readers.busy == 3)
    await asyncio.sleep(1.1)
    assert await code_of(asyncio.create_task(readers.open(hanging(gate), "'a'"))) is (
        ErrorCode.AT_CAPACITY
    )
    left = asyncio.create_task(readers.read(lambda: b"never wanted"))
    await asyncio.sleep(0)
    left.cancel()
    gate.set()
    assert await asyncio.gather(*reads) == [True] * 3


async def test_many_who_hang_hold_up_nobody_who_works(gate: threading.Event) -> None:
    readers = Readers()
    hung = [asyncio.create_task(readers.read(lambda: gate.wait(30))) for _ in range(60)]
    slowest = 0.0
    for _ in range(100):
        began = time.monotonic()
        assert await readers.read(lambda: 7) == 7
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 5  # All 60 get their threads in the meantime.
    gate.set()
    await asyncio.gather(*hung)


async def test_many_healthy_files_at_once_are_all_opened() -> None:
    readers = Readers()
    await asyncio.gather(*(readers.open(lambda given_up: None, "'a.wav'") for _ in range(1000)))
    assert readers.tally.refused == 0


def test_a_pool_starts_no_more_threads_than_it_needs() -> None:
    pool, done = DaemonPool("few", 64), threading.Semaphore(0)
    names: set[str] = set()

    def call() -> None:
        names.add(threading.current_thread().name + str(threading.get_ident()))
        done.release()

    for _ in range(1000):
        pool.submit(call)
    for _ in range(1000):
        assert done.acquire(timeout=10)
    assert len(names) <= 8
    assert pool.waiting == 0


async def test_the_default_executor_answers_and_does_not_keep_us(gate: threading.Event) -> None:
    loop, executor = asyncio.get_running_loop(), DaemonExecutor()
    assert await loop.run_in_executor(executor, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(executor, lambda: 1 // 0)
    hung = executor.submit(gate.wait, 30)
    executor.shutdown(wait=True)
    assert not hung.done()


async def test_a_listener_of_a_hanging_disk_leaves_at_once_and_its_file_is_closed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav("s24"))
    source = await open_file(path)
    before = len(os.listdir("/proc/self/fd"))
    entered = threading.Event()

    def hang(self: object, samples: int) -> bytes:
        entered.set()
        gate.wait(30)
        return b""

    monkeypatch.setattr("tenuto.sources.wav.WavSamples.read", hang)
    listening = asyncio.create_task(hear(source))
    await until(entered.is_set)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    began = time.monotonic()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert time.monotonic() - began < 0.2
    gate.set()
    await until(lambda: len(os.listdir("/proc/self/fd")) == before)


async def test_what_was_repaired_and_left_over_is_counted(tmp_path: Path) -> None:
    readers = Readers()
    endless = 0xFFFFFFFF  # As a pipe leaves it: to the end of the file.
    floats = np.array([0.5, np.nan, np.inf, 0.25], "<f4").tobytes() * 1000 + b"\1\2\3"
    shorts = bytes(2001)
    for name, kind, data in (("a.wav", "f32", floats), ("b.wav", "s16", shorts)):
        body = riff(fmt(kind), chunk(b"data", data, endless, pad=False), size=endless)
        (tmp_path / name).write_bytes(body)
    folder = MediaFolder(tmp_path, readers=readers)
    await hear(await folder.open("a.wav"))
    assert (readers.tally.repaired_samples, readers.tally.stray_bytes) == (2000, 3)
    await hear(await folder.open("b.wav"))
    assert (readers.tally.repaired_samples, readers.tally.stray_bytes) == (2000, 4)
