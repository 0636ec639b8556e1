"""Attempts one after the other, the first success wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenuto.client.errors import FailureKind, LegError
from tenuto.client.race import first_to_connect

Attempt = Callable[[], Awaitable[str]]


class Field:
    """Attempts under control: each ends when the test says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.discarded: list[str] = []
        self.outcomes: dict[str, asyncio.Future[str]] = {}

    def attempt(self, name: str) -> Attempt:
        async def run() -> str:
            self.started.append(name)
            self.outcomes[name] = asyncio.get_running_loop().create_future()
            try:
                return await self.outcomes[name]
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise

        return run

    def discard(self, connected: str) -> None:
        self.discarded.append(connected)

    def race(self, *names: str, delay: float) -> asyncio.Task[str]:
        attempts = [self.attempt(name) for name in names]
        return asyncio.ensure_future(first_to_connect(attempts, discard=self.discard, delay=delay))

    async def begun(self, *names: str) -> None:
        async with asyncio.timeout(2):
            while self.started != list(names):
                await asyncio.sleep(0.001)


@pytest.fixture
def field() -> Field:
    return Field()


async def test_the_first_alone_wins_alone(field: Field) -> None:
    race = field.race("a", "b", delay=60)
    await field.begun("a")
    field.outcomes["a"].set_result("a")
    assert await race == "a"
    assert field.started == ["a"]


async def test_a_failure_starts_the_next_at_once(field: Field) -> None:
    race = field.race("a", "b", delay=60)
    await field.begun("a")
    field.outcomes["a"].set_exception(LegError(FailureKind.REFUSED, "a refused"))
    await field.begun("a", "b")
    field.outcomes["b"].set_result("b")
    assert await race == "b"


async def test_silence_starts_the_next_and_the_loser_is_cancelled(field: Field) -> None:
    race = field.race("a", "b", delay=0.01)
    await field.begun("a", "b")
    field.outcomes["b"].set_result("b")
    assert await race == "b"
    assert field.cancelled == ["a"]


async def test_of_two_that_connect_together_one_is_discarded(field: Field) -> None:
    race = field.race("a", "b", delay=0.01)
    await field.begun("a", "b")
    field.outcomes["a"].set_result("a")
    field.outcomes["b"].set_result("b")
    winner = await race
    assert [winner, *field.discarded] in (["a", "b"], ["b", "a"])


async def test_if_all_fail_all_are_named(field: Field) -> None:
    race = field.race("a", "b", delay=0.01)
    await field.begun("a", "b")
    field.outcomes["b"].set_exception(LegError(FailureKind.REFUSED, "b refused"))
    await asyncio.sleep(0)
    field.outcomes["a"].set_exception(LegError(FailureKind.UNTRUSTED, "a is not trusted"))
    with pytest.raises(LegError, match="a is not trusted; b refused") as caught:
        await race
    assert caught.value.kind is FailureKind.UNTRUSTED


async def test_cancelling_the_race_cancels_all(field: Field) -> None:
    race = field.race("a", "b", delay=0.01)
    await field.begun("a", "b")
    race.cancel()
    with pytest.raises(asyncio.CancelledError):
        await race
    assert sorted(field.cancelled) == ["a", "b"]


async def test_a_bug_is_no_failure_to_connect(field: Field) -> None:
    race = field.race("a", "b", delay=0.01)
    await field.begun("a", "b")
    field.outcomes["a"].set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await race
    assert field.cancelled == ["b"]


class Open:
    """What is connected."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def connect(self, name: str) -> str:
        self.names.add(name)
        return name

    def close(self, name: str) -> None:
        self.names.discard(name)


async def test_cancelled_while_a_loser_takes_its_time_the_winner_is_discarded() -> None:
    made = Open()

    async def loser() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
        return "never"

    attempts = [loser, lambda: made.connect("winner")]
    race = asyncio.ensure_future(first_to_connect(attempts, discard=made.close, delay=0.01))
    while not made.names:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    race.cancel()
    with pytest.raises(asyncio.CancelledError):
        await race
    assert not made.names


@pytest.mark.parametrize("steps", range(8))
async def test_cancelled_while_all_succeed_none_is_left_but_a_winner_that_is_told(
    steps: int,
) -> None:
    made, go = Open(), asyncio.Event()

    def attempt(name: str) -> Attempt:
        async def run() -> str:
            await go.wait()
            return await made.connect(name)

        return run

    attempts = [attempt(name) for name in "abc"]
    race = asyncio.ensure_future(first_to_connect(attempts, discard=made.close, delay=0.001))
    await asyncio.sleep(0.05)
    go.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    for _ in range(3):  # once is not always enough for who cancels
        race.cancel()
        await asyncio.sleep(0)
    told = await asyncio.gather(race, return_exceptions=True)
    assert made.names == {name for name in told if isinstance(name, str)}
