"""Steps that are cut short, and how often."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.client.hurry import MOST_CUTS, Hurry


async def test_a_step_is_cut_short_and_another_is_not() -> None:
    hurry = Hurry()
    asyncio.get_running_loop().call_later(0.01, hurry.ask)
    assert await hurry.unless(asyncio.sleep(60, "late")) is None
    assert hurry.asked
    assert await hurry.unless(asyncio.sleep(0, "there")) == "there"


async def test_what_is_there_in_the_same_moment_is_let_go_of() -> None:
    hurry, discarded = Hurry(), list[str]()

    async def step() -> str:
        hurry.ask()
        return "leg"

    assert await hurry.unless(step(), discarded.append) is None
    assert discarded == ["leg"]


async def test_a_time_out_of_the_step_is_its_own() -> None:
    hurry = Hurry()

    async def step() -> None:
        hurry.asked = True
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await hurry.unless(step())


async def test_networks_that_come_faster_than_answers_let_one_come_to_its_end() -> None:
    hurry, begun = Hurry(), 0

    async def change() -> None:
        while True:
            await asyncio.sleep(0.001)
            hurry.ask()

    async def dial() -> str:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0.05)
        return "leg"

    changing = asyncio.create_task(change())
    for _ in range(2):
        begun = 0
        while (leg := await hurry.unless(dial())) is None:
            pass
        assert leg == "leg"
        assert begun == MOST_CUTS + 1
    for _ in range(MOST_CUTS):
        assert await hurry.unless(asyncio.sleep(60, "late")) is None
    step = asyncio.create_task(hurry.unless(asyncio.sleep(60, "late")))
    await asyncio.sleep(0.1)
    assert not step.done()
    hurry.end()
    assert await step is None
    changing.cancel()
