"""Listeners that stall and leave: nobody else hears it, and their producers stop."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable

import pytest

from bench.listening import listen
from bench.process import ServerProcess
from bench.rude import NeverReads, stall_and_leave

MEBIBYTE = 1024 * 1024
# 33 minutes of 48 kHz stereo, as fast as the listener takes it.
ENDLESS = "/v1/speak?source=counting&frames=100000&rate=48000&channels=2&lead=max"
PLAY = {"tone": "440", "seconds": "60", "lead": "0.2"}
TIMES = 50


async def watch(server: ServerProcess, seconds: float) -> list[int]:
    """Poll the metrics and note the server's memory, four times a second."""
    sizes = []
    for _ in range(round(seconds * 4)):
        await asyncio.to_thread(server.get, "/metrics")
        sizes.append(server.rss)
        await asyncio.sleep(0.25)
    return sizes


async def settle(server: ServerProcess) -> None:
    """Wait until the server has noticed that everybody left."""
    for _ in range(50):
        if await asyncio.to_thread(server.metric, "listeners") == 0:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("listeners stay attached after they left")


@pytest.mark.parametrize("abort", [False, True], ids=["FIN", "RST"])
async def test_fifty_stalled_tcp_listeners_leave_and_nobody_pays(
    abort: bool, server_process: Callable[..., ServerProcess]
) -> None:
    server = server_process()
    before = server.rss
    others = [
        asyncio.create_task(listen(server.port, server.ca, PLAY, transport=t, seconds=8.0))
        for t in ("quic", "tcp")
    ]
    watching = asyncio.create_task(watch(server, 7.0))
    await asyncio.sleep(0.5)

    async def one(number: int) -> None:
        await asyncio.sleep(number * 0.08)
        await asyncio.to_thread(
            stall_and_leave, server.port, server.ca, ENDLESS, seconds=1.0, abort=abort
        )

    await asyncio.gather(*(one(number) for number in range(TIMES)))
    heard = await asyncio.gather(*others)
    sizes = await watching
    await settle(server)
    for listener in heard:
        assert listener.complete
        assert len(listener.sequences) > 350
        # What a frozen server would show is seconds; the exact figure is the bench's.
        assert listener.longest_gap < 0.5
    assert max(sizes) - before < 40 * MEBIBYTE
    produced = server.metric("host_frames_produced_total")
    await asyncio.sleep(0.3)
    assert server.metric("host_frames_produced_total") == produced


@pytest.mark.parametrize("stop_sending", [None, 0.5], ids=["never reads", "STOP_SENDING"])
async def test_fifty_quic_listeners_that_never_read_cost_a_window_each(
    stop_sending: float | None, server_process: Callable[..., ServerProcess]
) -> None:
    server = server_process()
    before = server.rss
    other = asyncio.create_task(listen(server.port, server.ca, PLAY, transport="quic", seconds=9.0))
    rude = [NeverReads(server.port, server.ca, ENDLESS) for _ in range(TIMES)]

    async def one(number: int) -> None:
        await asyncio.sleep(number * 0.06)
        await rude[number].run(4.0, stop_sending_after=stop_sending)

    watching = asyncio.create_task(watch(server, 7.5))
    await asyncio.gather(*(one(number) for number in range(TIMES)))
    held = server.metric("quic_held_bytes")
    heard = await other
    sizes = await watching
    assert heard.complete
    assert len(heard.sequences) > 350
    assert all(0 < client.received <= 64 * 1024 for client in rude)
    assert held <= TIMES * 128 * 1024
    assert max(sizes) - before < 60 * MEBIBYTE
    # After the first two seconds of all having arrived, memory stands still.
    assert max(sizes[-8:]) - min(sizes[-8:]) < 8 * MEBIBYTE


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl command here")
async def test_curl_interrupted_in_full_flight_leaves_nothing_running(
    server_process: Callable[..., ServerProcess],
) -> None:
    """It closes TLS properly while we write: a cancellation may meet a write that just ends."""
    server = server_process()
    command = ["curl", "-s", "--cacert", str(server.ca), "-o", "/dev/null", server.url + ENDLESS]
    for _ in range(12):
        curl = await asyncio.create_subprocess_exec(*command)
        await asyncio.sleep(0.35)
        curl.send_signal(signal.SIGINT)
        await curl.wait()
    await settle(server)
    produced = server.metric("host_frames_produced_total")
    await asyncio.sleep(0.3)
    assert server.metric("host_frames_produced_total") == produced
    assert server.metric("tcp_faults_total") == 0


async def test_a_slow_quic_reader_gets_what_it_reads_and_no_more(
    server_process: Callable[..., ServerProcess],
) -> None:
    server = server_process()
    slow = NeverReads(server.port, server.ca, ENDLESS, pace=20_000)
    await slow.run(5.0)
    assert 100_000 < slow.received < 64 * 1024 + 6 * 20_000
