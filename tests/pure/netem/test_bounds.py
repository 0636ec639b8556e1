"""No packet is lost from the books, and nothing grows without end."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.link import Link, Packet
from netem.link.transit import MAX_BYTES, MAX_PACKETS
from netem.profile import (
    Blackout,
    Bottleneck,
    Conditions,
    Distribution,
    Fades,
    GilbertElliott,
    Jitter,
    RandomLoss,
    Rate,
    Schedule,
)
from tests.pure.netem.sending import law, numbered

SHARE = st.floats(0.0, 1.0)
SHORT = st.floats(0.0, 2.0)
LOSS: st.SearchStrategy[RandomLoss | GilbertElliott | None] = st.one_of(
    st.none(),
    st.builds(RandomLoss, rate=SHARE),
    st.builds(GilbertElliott, to_bad=SHARE, to_good=SHARE, loss_bad=SHARE, loss_good=SHARE),
)
BOTTLENECK: st.SearchStrategy[Bottleneck | None] = st.one_of(
    st.none(),
    st.builds(Rate, bits_per_second=st.floats(100.0, 1e9), queue=st.integers(1, 50)),
    st.builds(
        Schedule,
        opportunities=st.lists(st.integers(0, 500), max_size=20).map(lambda m: (*sorted(m), 501)),
        queue=st.integers(1, 50),
    ),
)
CONDITIONS = st.builds(
    Conditions,
    delay=SHORT,
    jitter=st.none()
    | st.builds(
        Jitter,
        spread=SHORT,
        distribution=st.sampled_from(Distribution),
        reordering=st.booleans(),
    ),
    loss=LOSS,
    fades=st.none() | st.builds(Fades, every=st.just(2.0), length=st.floats(0.01, 1.9), loss=SHARE),
    blackouts=st.lists(
        st.builds(Blackout, start=SHORT, length=SHORT, every=st.none() | st.floats(0.1, 5.0)),
        max_size=2,
    ).map(tuple),
    bottleneck=BOTTLENECK,
    reorder=SHARE,
    duplicate=SHARE,
    corrupt=SHARE,
)
STEPS = st.lists(st.tuples(st.floats(0.0, 0.5), st.integers(0, 4000), st.booleans()), max_size=60)


@given(CONDITIONS, st.integers(), STEPS)
def test_every_packet_is_somewhere_once(
    conditions: Conditions, seed: int, steps: list[tuple[float, int, bool]]
) -> None:
    told: Counter[str] = Counter()
    moments = set()

    def dropped(cause: str, offered: float) -> None:
        told[cause] += 1
        assert offered in moments

    link = Link(conditions, seed, 0.0, dropped)
    now, taken = 0.0, 0
    for gap, size, offered in steps:
        now += gap
        if offered:
            moments.add(now)
            link.offer(Packet(b"data", size), now)
        else:
            taken += len(link.pop_due(now))
            deadline = link.next_deadline()
            assert deadline is None or deadline > now
        assert law(link.tally)
        assert link.tally.delivered == taken
        assert (link.next_deadline() is None) is (link.tally.in_flight == 0)
    while (deadline := link.next_deadline()) is not None:
        taken += len(link.pop_due(deadline))
    assert link.tally.in_flight == 0
    assert link.tally.delivered == taken
    assert law(link.tally)
    # Each drop is told of, by the name of its count.
    assert told.total() == link.tally.dropped
    assert all(getattr(link.tally, cause) == count for cause, count in told.items())


@given(CONDITIONS, st.integers(), STEPS)
def test_the_same_offers_with_the_same_seed_come_out_the_same(
    conditions: Conditions, seed: int, steps: list[tuple[float, int, bool]]
) -> None:
    outcomes = []
    for _ in range(2):
        link = Link(conditions, seed, 10.0)
        now, found = 10.0, []
        for number, (gap, size, _) in enumerate(steps):
            now += gap
            link.offer(numbered(number, size), now)
        while (deadline := link.next_deadline()) is not None:
            found.append((deadline, link.pop_due(deadline)))
        outcomes.append((found, link.tally))
    assert outcomes[0] == outcomes[1]


@pytest.mark.untraced
def test_what_is_under_way_is_bounded_in_packets() -> None:
    for jitter in (None, Jitter(spread=0.1, reordering=True)):
        link = Link(Conditions(delay=1.0, jitter=jitter), 1, 0.0)
        for _ in range(MAX_PACKETS + 10):
            link.offer(Packet(b"", 28), 0.0)
        assert (link.tally.in_flight, link.tally.overflowed) == (MAX_PACKETS, 10)
        assert law(link.tally)
        # When they are gone there is room again.
        assert len(link.pop_due(2.0)) == MAX_PACKETS
        link.offer(Packet(b"", 28), 2.0)
        assert link.tally.overflowed == 10


def test_what_is_under_way_is_bounded_in_bytes() -> None:
    link = Link(Conditions(delay=1.0, duplicate=1.0), 1, 0.0)
    packet = Packet(bytes(65_508), 65_536)
    for _ in range(MAX_BYTES // 65_536 // 2 + 3):
        link.offer(packet, 0.0)
    assert (link.tally.in_flight, link.tally.overflowed) == (MAX_BYTES // 65_536, 6)
    assert law(link.tally)
    # A small one still has no room: not a byte is left.
    link.offer(Packet(b"", 28), 0.5)
    assert link.tally.overflowed == 8
    assert len(link.pop_due(1.0)) == 1024
    link.offer(packet, 1.0)
    assert link.tally.in_flight == 2
