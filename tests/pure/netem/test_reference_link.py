"""A path that leaves nothing to chance does what a second, plain telling of it does."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netem.link import Path
from netem.profile import Blackout, Bottleneck, Conditions, Mtu, Profile, Rate, Schedule, Way
from tests.pure.netem.sending import number_of, numbered
from tests.support.reference_link import ReferenceLink

pytestmark = pytest.mark.untraced

Sending = list[tuple[float, int]]
SIZES = st.sampled_from([0, 1, 28, 100, 256, 1_024, 1_280, 1_499, 1_500, 1_501, 3_000, 65_535])
# Sixteenths and powers of two are exact as floats, so that moments meet when they should.
SIXTEENTHS = st.integers(0, 160).map(lambda count: count / 16)
LENGTHS = st.integers(1, 40).map(lambda count: count / 16)
RATES = st.integers(10, 20).map(lambda power: float(2**power))
QUEUES = st.integers(1, 5)
TRACES = st.lists(st.integers(0, 400), max_size=8).map(sorted)


@st.composite
def blackouts(draw: st.DrawFn) -> Blackout:
    length = draw(LENGTHS)
    every = draw(st.none() | LENGTHS.map(lambda rest: length + rest))
    return Blackout(start=draw(SIXTEENTHS), length=length, every=every)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    moments = [*draw(TRACES), 400 + draw(st.integers(1, 400))]
    return Schedule(opportunities=tuple(moments), queue=draw(QUEUES))


def conditions(bottleneck: st.SearchStrategy[Bottleneck | None]) -> st.SearchStrategy[Conditions]:
    return st.builds(
        Conditions,
        delay=SIXTEENTHS,
        blackouts=st.lists(blackouts(), max_size=3).map(tuple),
        bottleneck=bottleneck,
        mtu=st.none()
        | st.builds(Mtu, size=st.sampled_from([68, 1_280, 1_500]), answers=st.booleans()),
    )


def sendings(unit: float, longest: int) -> st.SearchStrategy[Sending]:
    """Gaps in units, and sizes; a gap of none is two packets at one moment."""
    gaps = st.integers(0, 5) | st.integers(0, longest)
    return st.lists(st.tuples(gaps.map(lambda gap: gap * unit), SIZES), min_size=1, max_size=30)


def compare(told: Conditions, started: float, moments: Sending) -> None:
    path = Path(Profile(name="p", up=told), 1, started)
    reference = ReferenceLink(told, started)
    found: list[tuple[int, float]] = []

    def take(now: float) -> None:
        while (due := path.next_deadline()) is not None and due <= now:
            found.extend((number_of(packet), due) for _, packet in path.pop_due(due))

    for number, (now, size) in enumerate(moments):
        take(now)
        refusal = path.offer(Way.UP, numbered(number, size), now)
        before = reference.too_big
        reference.offer(number, size, now)
        answered = told.mtu is not None and told.mtu.answers
        assert (refusal is not None) == (reference.too_big > before and answered)
    take(float("inf"))
    assert found == reference.arrivals()
    tally = path.tally().up
    assert tally.too_big == reference.too_big
    assert tally.link.blacked_out == reference.blacked_out
    assert tally.link.queue_dropped == reference.queue_dropped
    assert tally.link.delivered == len(found)


@given(
    told=conditions(st.none() | st.builds(Rate, bits_per_second=RATES, queue=QUEUES)),
    started=st.integers(-16, 1_600).map(lambda count: count / 16),
    gaps=sendings(1 / 16, 200),
)
@settings(max_examples=400)
def test_at_a_constant_rate(told: Conditions, started: float, gaps: Sending) -> None:
    now, moments = started, []
    for gap, size in gaps:
        now += gap
        moments.append((now, size))
    compare(told, started, moments)


@given(told=conditions(schedules()), started=st.integers(0, 9), gaps=sendings(1.0, 3_000))
@example(
    told=Conditions(bottleneck=Schedule(opportunities=(3,), queue=1)),
    started=7,
    gaps=[(2_997.0, 100)] * 3,
)
@settings(max_examples=400)
def test_by_a_schedule(told: Conditions, started: int, gaps: Sending) -> None:
    # Whole milliseconds, put together as the moments of a trace are.
    milliseconds, moments = 0.0, []
    for gap, size in gaps:
        milliseconds += gap
        moments.append((started + milliseconds / 1000.0, size))
    compare(told, float(started), moments)
