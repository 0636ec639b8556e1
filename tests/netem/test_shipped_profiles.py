"""The built-in profiles: each is read, each value has a source, each says what it is for."""

import pytest

from netem.catalogue import Catalogue
from netem.link import Endpoint, Flow
from netem.link.nat import Translation
from netem.profile.conditions import Distribution, Schedule
from netem.profiles.drive_trace import SEED, make_traces
from netem.tc import Hop, plan

NAMES = Catalogue().names()
FLOW = Flow(17, Endpoint("198.18.0.2", 5000), Endpoint("198.18.0.1", 443))


@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_a_source(name: str) -> None:
    profile = Catalogue().load(name)
    assert profile.summary
    assert len(profile.summary) <= 100
    unstated = [key for key, source in profile.sources.items() if not source]
    assert not unstated, "name a source, or write ours"


@pytest.mark.parametrize("name", NAMES)
def test_tc_does_it_or_says_what_it_leaves_out(name: str) -> None:
    profile = Catalogue().load(name)
    made = plan(profile, Hop(to_client="rc", to_server="rs"))
    assert name == "clear" or made.apply or made.cannot


@pytest.mark.parametrize("way", ["down", "up"])
def test_the_drive_is_what_its_script_makes(way: str) -> None:
    profile = Catalogue().load("4g-driving")
    conditions = profile.down if way == "down" else profile.up
    schedule = conditions.bottleneck
    assert isinstance(schedule, Schedule)
    assert list(schedule.opportunities) == make_traces(SEED)[schedule.name]
    mean = len(schedule.opportunities) * 1_500 * 8 / (schedule.opportunities[-1] / 1_000)
    assert (4.6e6 if way == "down" else 1e6) < mean < 16.8e6
    gaps = [
        (later - earlier) / 1_000
        for earlier, later in zip(schedule.opportunities, schedule.opportunities[1:], strict=False)
        if later - earlier > 500
    ]
    assert 2 <= len(gaps) <= 6
    assert 0.7 <= min(gaps) <= max(gaps) <= 4.01


def test_the_interop_runner_s_times_are_its_own() -> None:
    # Its scenario blackhole has --repeat=1 unless told otherwise; rebind counts from the first.
    (dark,) = Catalogue().load("interop-blackhole").up.blackouts
    assert (dark.start, dark.length, dark.every) == (5.0, 2.0, None)
    nat = Catalogue().load("interop-rebind").nat
    assert nat is not None
    seen = Translation(nat, 0.0)
    ports = [seen.outward(FLOW, float(second)).client.port for second in range(13)]
    moved = [second for second in range(1, 13) if ports[second] != ports[second - 1]]
    assert moved == [1, 6, 11]


@pytest.mark.parametrize(("name", "base", "most"), [("c", 0.016, 0.016), ("f", 0.128, 0.1)])
def test_the_jitter_of_g1050_comes_on_top_of_its_delay(name: str, base: float, most: float) -> None:
    conditions = Catalogue().load(f"g1050-{name}").down
    assert conditions.jitter is not None
    assert conditions.jitter.distribution is Distribution.UNIFORM
    assert conditions.delay - conditions.jitter.spread == pytest.approx(base)
    assert conditions.delay + conditions.jitter.spread == pytest.approx(base + most)
