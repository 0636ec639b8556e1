"""The built-in profiles: each is read, each value has a source, each says what it is for."""

import pytest

from netem.catalogue import Catalogue
from netem.profile.conditions import Schedule
from netem.profiles.drive_trace import SEED, make_traces
from netem.tc import Hop, plan

NAMES = Catalogue().names()


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
