"""What is run in which order, and how long it is said to take: by plain numbers."""

from __future__ import annotations

import pytest

from bench.lab.modes import choose
from bench.lab.plan import Pace, Plan, slots_for
from netem.catalogue import Catalogue


def plan(
    *, modes: int = 8, profiles: tuple[str, ...] = ("rtt80",), seeds: int = 10, seconds: float = 20
) -> Plan:
    return Plan(
        modes=choose(())[:modes],
        profiles=tuple(map(Catalogue().load, profiles)),
        seeds=seeds,
        seconds=seconds,
        at_once=slots_for(modes, seeds, cores=2),
    )


@pytest.mark.parametrize(
    ("modes", "seeds", "cores", "together"),
    [(8, 10, 2, 2), (8, 10, 64, 2), (8, 10, 1, 1), (1, 10, 2, 10), (1, 40, 2, 16), (20, 5, 2, 1)],
)
def test_as_many_seeds_at_once_as_the_machine_takes(
    modes: int, seeds: int, cores: int, together: int
) -> None:
    assert slots_for(modes, seeds, cores) == together


def test_every_seed_of_every_profile_is_in_one_wave() -> None:
    made = plan(profiles=("rtt80", "rtt80-loss5"), seeds=5)
    order = [(task.profile.name, task.seeds) for task in made.tasks]
    assert order == [
        ("rtt80", (1, 2)),
        ("rtt80-loss5", (1, 2)),
        ("rtt80", (3, 4)),
        ("rtt80-loss5", (3, 4)),
        ("rtt80", (5,)),
        ("rtt80-loss5", (5,)),
    ]


def test_audio_is_counted_in_frames_of_20_ms() -> None:
    assert plan(seconds=20).frames == 1000
    assert plan(seconds=1.01).frames == 50


def test_the_default_run_is_said_to_take_less_than_five_minutes() -> None:
    assert 100 < plan().estimate() < 300
    assert plan(seeds=2, seconds=4).estimate() < 30


def test_what_is_left_is_judged_by_the_waves_that_are_over() -> None:
    pace = Pace(plan(seeds=6))
    assert pace.left(0.0) > pace.left(2.0) > 3 * 20.0
    pace.set_up(10.0)
    pace.finished(40.0, again=False)
    assert pace.left(40.0) == 2 * 30.0 + 3.0
    assert pace.left(55.0) == 15.0 + 30.0 + 3.0
    assert pace.left(100.0) == 30.0 + 3.0, "a wave that takes too long is not over for that"
    pace.finished(100.0, again=True)
    assert pace.left(100.0) == 2 * 45.0 + 3.0, "a wave that is repeated is still to come"
    pace.finished(130.0, again=False)
    pace.finished(160.0, again=False)
    assert pace.left(160.0) == 3.0
