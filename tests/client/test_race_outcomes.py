"""How a race ends: refusals are final on either transport, and who is full is waited for."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenuto.client import (
    Address,
    ConnectError,
    Deadlines,
    Event,
    PathStore,
    Retrying,
    RetryPolicy,
    TransportChosen,
    TransportFailed,
    Trust,
    open_stream,
)
from tenuto.errors import ErrorCode, RequestError
from tenuto.policy import CoolDown
from tests.client.authority import Pair
from tests.client.peer import Asked, Out, Peer, problem, sentence, serving, whole
from tests.client.shell import Run, Served
from tests.client.test_opening import black_hole, collect, elapsed

QUICK = RetryPolicy(base=0.001, cap=0.001, patience=5.0)


def only_over(transport: str, peer: list[Peer], answer: object) -> object:
    """A script that answers over one transport and is silent over the other."""

    async def script(asked: Asked, out: Out) -> None:
        if peer[0].asked[-1][0] == transport:
            await answer(asked, out)  # type: ignore[operator]
        else:
            await asyncio.sleep(3600)

    return script


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_a_refusal_over_tcp_ends_what_quic_waits_for(
    pair: Pair, trust: Trust, status: int
) -> None:
    """QUIC would wait for 10 s."""
    async with serving(pair, problem(status, detail="no"), transports=("tcp",)) as peer:
        with black_hole(socket.SOCK_DGRAM, peer.port):
            start = asyncio.get_running_loop().time()
            with pytest.raises(RequestError, match="no") as caught:
                await collect(peer.url(), trust)
            assert elapsed(start) < 1.0
    assert caught.value.detail["status"] == status


async def test_a_refusal_over_tcp_ends_a_quic_that_is_connected_and_silent(
    pair: Pair, trust: Trust
) -> None:
    held: list[Peer] = []
    script = only_over("tcp", held, problem(403, detail="not you"))
    async with serving(pair, script) as peer:  # type: ignore[arg-type]
        held.append(peer)
        start = asyncio.get_running_loop().time()
        with pytest.raises(RequestError, match="not you"):
            await collect(peer.url(), trust)
        assert elapsed(start) < 1.0
        assert [way for way, _ in peer.asked] == ["quic", "tcp"]


async def test_headers_without_a_body_win_no_race(pair: Pair, trust: Trust) -> None:
    """A path may let a response's head through, and nothing behind it."""
    held: list[Peer] = []

    async def script(asked: Asked, out: Out) -> None:
        if held[0].asked[-1][0] == "quic":
            await out.head()
            await asyncio.sleep(3600)
        await whole(sentence(3))(asked, out)

    async with serving(pair, script) as peer:
        held.append(peer)
        start = asyncio.get_running_loop().time()
        events = await collect(peer.url(), trust)
        assert elapsed(start) < 1.0
    failed = [event.failure.transport for event in events if isinstance(event, TransportFailed)]
    chosen = [event.transport for event in events if isinstance(event, TransportChosen)]
    assert (failed, chosen) == (["quic"], ["tcp"])


async def test_both_arms_carry_one_key(pair: Pair, trust: Trust) -> None:
    held: list[Peer] = []
    script = only_over("tcp", held, whole(sentence(3)))
    async with serving(pair, script) as peer:  # type: ignore[arg-type]
        held.append(peer)
        await collect(peer.url(), trust)
        await collect(peer.url(), trust, transport="tcp")
        keys = [asked.headers["idempotency-key"] for _, asked in peer.asked]
    assert keys[0] == keys[1] != keys[2]


async def test_an_error_names_all_that_was_tried(trust: Trust) -> None:
    deadlines = Deadlines(quic=0.5, quic_left=0.3, tcp=0.5, response=0.5)
    with (
        black_hole(socket.SOCK_STREAM) as port,
        black_hole(socket.SOCK_DGRAM, port),
        pytest.raises(ConnectError) as caught,
    ):
        await collect(f"https://127.0.0.1:{port}/", trust, deadlines=deadlines)
    assert f"QUIC: no answer from 127.0.0.1:{port}" in caught.value.message
    assert f"TCP: 127.0.0.1:{port} refused" in caught.value.message


async def test_every_attempt_to_go_on_has_a_port_of_its_own(
    pair: Pair, trust: Trust, transport: str
) -> None:
    ports: list[int] = []

    async def script(asked: Asked, out: Out) -> None:
        if transport == "tcp":
            ports.append(out._writer.get_extra_info("peername")[1])  # type: ignore[attr-defined]
        else:
            path = out._protocol._quic._network_paths[0]  # type: ignore[attr-defined]
            ports.append(path.addr[1])
        await out.head(tenuto_session="s-1")
        if len(ports) < 6:
            await out.cut()
        else:
            await out.send(sentence(3))
            await out.end()

    async with (
        serving(pair, script) as peer,
        open_stream(peer.url(), transport=transport, trust=trust, resume=QUICK) as stream,  # type: ignore[arg-type]
    ):
        assert len([frame async for frame in stream]) == 3
    assert len(set(ports)) == len(ports) == 6


# A server that is full for a moment


class Full:
    """Refuses so often, then plays."""

    def __init__(self, times: int, retry_after: float | str, status: int = 503) -> None:
        self._left = times
        fields = {"code": "at-capacity", "detail": "full", "retry_after": retry_after}
        self._refuse = problem(status, **fields)

    async def __call__(self, asked: Asked, out: Out) -> None:
        self._left -= 1
        script = self._refuse if self._left >= 0 else whole(sentence(3))
        await script(asked, out)


async def test_a_moment_is_waited_for(pair: Pair, trust: Trust, transport: str) -> None:
    async with serving(pair, Full(3, 0.005)) as peer:
        events = await collect(peer.url(), trust, transport=transport)
        assert len(peer.asked) == 4
    waits = [(event.attempt, event.wait) for event in events if isinstance(event, Retrying)]
    assert waits == [(1, 0.005), (2, 0.005), (3, 0.005)]


@pytest.mark.parametrize(
    ("times", "retry_after", "asked"), [(4, 0.005, 4), (1, 5.1, 1), (1, "soon", 1), (1, 0, 1)]
)
async def test_more_is_told_to_the_caller(
    pair: Pair, trust: Trust, times: int, retry_after: float | str, asked: int
) -> None:
    async with serving(pair, Full(times, retry_after)) as peer:
        start = asyncio.get_running_loop().time()
        with pytest.raises(RequestError, match="full") as caught:
            await collect(peer.url(), trust)
        assert elapsed(start) < 1.0
        assert len(peer.asked) == asked
    assert caught.value.code is ErrorCode.AT_CAPACITY


async def test_who_does_not_resume_does_not_wait(pair: Pair, trust: Trust) -> None:
    async with serving(pair, Full(1, 0.005)) as peer:
        with pytest.raises(RequestError, match="full"):
            await collect(peer.url(), trust, resume=None)
        assert len(peer.asked) == 1


async def test_waiting_can_be_cancelled(pair: Pair, trust: Trust) -> None:
    events: list[Event] = []

    async def listen() -> None:
        async with open_stream(peer.url(), trust=trust, on_event=events.append):
            pass

    async with serving(pair, Full(1, 4.0)) as peer:
        task = asyncio.create_task(listen())
        while not events:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(peer.asked) == 1


# What is remembered


def a_network(addresses: Sequence[Address]) -> str:
    """As if 127.0.0.1 were behind a gateway."""
    return "a network"


async def test_where_quic_failed_tcp_begins_until_its_time_is_over(
    pair: Pair, trust: Trust
) -> None:
    clock = [1e9]
    store = PathStore(identify=a_network, clock=lambda: clock[0])
    took = []
    async with serving(pair, whole(sentence(3)), transports=("tcp",)) as peer:
        with black_hole(socket.SOCK_DGRAM, peer.port):
            for step in (0, 1, 300):
                clock[0] += step
                start = asyncio.get_running_loop().time()
                await collect(peer.url(), trust, memory=store)
                took.append(elapsed(start))
    assert took[0] > 0.25
    assert took[1] < 0.2
    assert took[2] > 0.25


async def test_a_memory_that_is_wrong_costs_a_quarter_of_a_second(pair: Pair, trust: Trust) -> None:
    """QUIC is remembered to fail, and now it is TCP that brings nothing."""
    held: list[Peer] = []
    script = only_over("quic", held, whole(sentence(3)))
    store = PathStore(identify=a_network)
    async with serving(pair, script) as peer:  # type: ignore[arg-type]
        held.append(peer)
        store.put("a network", f"https://localhost:{peer.port}", CoolDown(1, store.clock() + 300))
        start = asyncio.get_running_loop().time()
        await collect(peer.url(), trust, memory=store)
        assert 0.2 < elapsed(start) < 1.0
        assert [way for way, _ in peer.asked] == ["tcp", "quic"]


@pytest.mark.parametrize("forgets", [True, False])
def test_no_memory_reads_and_writes_none(
    run: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    state = tmp_path / "state" / "paths.json"
    kept = PathStore(state, identify=a_network)
    monkeypatch.setattr("tenuto.client.opening.default_store", lambda: kept)

    async def script(asked: Asked, out: Out) -> None:
        if peer.asked[-1][0] == "quic":
            await asyncio.sleep(3600)
        await whole(sentence(3))(asked, out)

    with served(script) as peer:
        output = tmp_path / "heard.raw"
        options = ["--no-memory"] if forgets else []
        for _ in range(2):
            assert run("play", peer.url(), "-o", output, *options).exit_code == 0
        first = [way for way, _ in peer.asked]
    if forgets:
        assert not state.exists()
        assert first == ["quic", "tcp", "quic", "tcp"]
    else:
        assert len(json.loads(state.read_text())["networks"]) == 1
        assert first == ["quic", "tcp", "tcp"]
