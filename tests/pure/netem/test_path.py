"""Both directions and what stands between: MTU, firewall, NAT."""

import pytest

from netem.link import TOO_BIG, Endpoint, Flow, Packet, Path, QuotedFlow, Refusal
from netem.link.firewall import MAX_FLOWS, FirstPackets
from netem.link.nat import MAX_BINDINGS, Translation
from netem.profile import (
    Answer,
    Block,
    Conditions,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Way,
)
from tests.pure.netem.sending import CLIENT, FLOW, SERVER, law, numbered

TCP_FLOW = FLOW._replace(protocol=6)


def from_port(port: int) -> Flow:
    return FLOW._replace(client=CLIENT._replace(port=port))


def packet(size: int = 100, flow: Flow | None = FLOW) -> Packet:
    return Packet(b"data", size, flow)


def passed(path: Path, now: float = 1e6) -> list[tuple[Way, Packet]]:
    return path.pop_due(now)


def test_each_direction_has_its_own_conditions() -> None:
    profile = Profile(name="p", up=Conditions(delay=0.1), down=Conditions(delay=0.2))
    path = Path(profile, 1, 0.0)
    assert path.next_deadline() is None
    assert not path.needs_flows
    path.offer(Way.DOWN, numbered(1), 0.0)
    path.offer(Way.UP, numbered(2), 0.0)
    assert path.next_deadline() == 0.1
    assert path.pop_due(0.1) == [(Way.UP, numbered(2))]
    assert path.next_deadline() == 0.2
    assert path.pop_due(0.2) == [(Way.DOWN, numbered(1))]
    tally = path.tally()
    assert tally.up.link.mean_delay == pytest.approx(0.1)
    assert tally.down.link.mean_delay == pytest.approx(0.2)
    assert tally.up.offered == tally.down.offered == 1


@pytest.mark.parametrize("reorder", [0.0, 1e-9])
def test_what_is_due_can_be_had_with_its_moments(reorder: float) -> None:
    side = Conditions(delay=0.1, reorder=reorder)
    path = Path(Profile(name="p", up=side, down=side), 1, 0.0)
    for number in range(3):
        path.offer(Way.UP, numbered(number), number * 0.5)
    path.offer(Way.DOWN, numbered(3), 1.0)
    assert path.pop_timed(0.05) == [(Way.UP, []), (Way.DOWN, [])]
    assert path.pop_timed(0.7) == [
        (Way.UP, [(0.1, numbered(0)), (0.6, numbered(1))]),
        (Way.DOWN, []),
    ]
    assert path.pop_timed(2.0) == [(Way.UP, [(1.1, numbered(2))]), (Way.DOWN, [(1.1, numbered(3))])]
    tally = path.tally()
    assert (tally.up.link.delivered, tally.down.link.delivered) == (3, 1)
    assert tally.rebindings == tally.forgotten == 0


@pytest.mark.parametrize(
    "profile",
    [
        Profile(name="p", block=Block()),
        Profile(name="p", police=Police(bits_per_second=1e6, burst=1500)),
        Profile(name="p", nat=Nat()),
    ],
)
def test_these_need_to_know_the_flow(profile: Profile) -> None:
    assert Path(profile, 1, 0.0).needs_flows
    # And let pass what has none.
    path = Path(profile, 1, 0.0)
    for way in Way:
        assert path.offer(way, packet(flow=None), 0.0) is None
    assert len(passed(path)) == 2


# MTU


@pytest.mark.parametrize("answers", [False, True])
def test_what_is_above_the_mtu_does_not_pass(answers: bool) -> None:
    up = Conditions(mtu=Mtu(size=1400, answers=answers))
    path = Path(Profile(name="p", up=up), 1, 0.0)
    assert path.offer(Way.UP, packet(1400), 0.0) is None
    big = packet(1401, None)
    assert path.offer(Way.UP, big, 0.0) == (Refusal(TOO_BIG, big, 1400) if answers else None)
    assert path.offer(Way.DOWN, packet(1401), 0.0) is None
    assert [way for way, _ in passed(path)] == [Way.UP, Way.DOWN]
    assert (path.tally().up.too_big, path.tally().up.offered) == (1, 2)


# Block


@pytest.mark.parametrize("answer", Answer)
def test_udp_is_blocked_and_tcp_is_not(answer: Answer) -> None:
    path = Path(Profile(name="p", block=Block(answer=answer)), 1, 0.0)
    for way in Way:
        refusal = path.offer(way, packet(), 0.0)
        assert refusal == (None if answer is Answer.DROP else Refusal(answer, packet()))
        assert path.offer(way, packet(flow=TCP_FLOW), 0.0) is None
    assert [p.flow for _, p in passed(path)] == [TCP_FLOW, TCP_FLOW]
    tally = path.tally()
    assert (tally.up.blocked, tally.down.blocked) == (1, 1)


@pytest.mark.parametrize("way", Way)
def test_a_block_of_one_way_lets_the_other_pass(way: Way) -> None:
    path = Path(Profile(name="p", block=Block(first_packets=1, way=way)), 1, 0.0)
    for each in (way, way, way.back, way.back):
        path.offer(each, packet(), 0.0)
    assert sorted(each for each, _ in passed(path)) == sorted((way, way.back, way.back))


def test_a_port_is_the_servers_whatever_the_direction() -> None:
    path = Path(Profile(name="p", block=Block(), udp_port=443), 1, 0.0)
    to_443 = FLOW._replace(server=SERVER._replace(port=443))
    from_443 = FLOW._replace(client=CLIENT._replace(port=443))
    for way in Way:
        for flow in (to_443, from_443):
            path.offer(way, packet(flow=flow), 0.0)
    assert passed(path) == [(Way.UP, packet(flow=from_443)), (Way.DOWN, packet(flow=from_443))]


def test_the_first_packets_of_each_flow_pass_in_each_direction() -> None:
    path = Path(Profile(name="p", block=Block(first_packets=3)), 1, 0.0)
    for port in (1, 2):
        for way in Way:
            for _ in range(5):
                path.offer(way, packet(flow=from_port(port)), 0.0)
    assert len(passed(path)) == 12
    assert (path.tally().up.blocked, path.tally().down.blocked) == (4, 4)


def test_the_flows_that_are_counted_are_bounded() -> None:
    first = FirstPackets(1)
    flows = [Flow(17, Endpoint("h", n), SERVER) for n in range(MAX_FLOWS + 1)]
    for flow in flows[:MAX_FLOWS]:
        assert first.passes(flow)
    assert not first.passes(flows[0])
    assert first.forgotten == 0
    # One more, and the one least recently seen is forgotten: that is no longer the first.
    assert first.passes(flows[MAX_FLOWS])
    assert first.forgotten == 1
    assert not first.passes(flows[0])
    assert first.passes(flows[1])
    assert first.forgotten == 2


def test_a_path_counts_what_its_firewall_forgot() -> None:
    path = Path(Profile(name="p", block=Block(first_packets=1)), 1, 0.0)
    for number in range(MAX_FLOWS + 5):
        path.offer(Way.UP, packet(flow=Flow(17, Endpoint("h", number), SERVER)), 0.0)
    assert path.tally().forgotten == 5


# Police


def test_policing_drops_what_is_above_the_bucket() -> None:
    # A thousand bytes a second, two thousand at once.
    profile = Profile(name="p", police=Police(bits_per_second=8000.0, burst=2000))
    path = Path(profile, 1, 10.0)
    for _ in range(5):
        path.offer(Way.UP, packet(500), 10.0)
    assert path.tally().up.policed == 1
    path.offer(Way.UP, packet(500), 10.4)
    assert path.tally().up.policed == 2
    path.offer(Way.UP, packet(500), 10.5)
    assert path.tally().up.policed == 2
    # Never more than the burst, however long nobody came.
    for _ in range(5):
        path.offer(Way.UP, packet(500), 1000.0)
    assert path.tally().up.policed == 3
    # TCP and the other direction are not concerned.
    for _ in range(20):
        path.offer(Way.UP, packet(500, TCP_FLOW), 1000.0)
    for _ in range(4):
        path.offer(Way.DOWN, packet(500), 1000.0)
    assert (path.tally().up.policed, path.tally().down.policed) == (3, 0)


def test_policing_over_a_minute_lets_its_rate_through() -> None:
    profile = Profile(name="p", police=Police(bits_per_second=80_000.0, burst=3000))
    path = Path(profile, 1, 0.0)
    for number in range(6000):
        path.offer(Way.DOWN, packet(200), number * 0.01)
    carried = path.tally().down.link.offered * 200
    assert carried == pytest.approx(10_000 * 60 + 3000, abs=300)


# NAT


def test_a_flow_has_a_port_outside_until_the_nat_rebinds() -> None:
    profile = Profile(name="p", nat=Nat(rebind_at=(2.5,), rebind_every=10.0))
    path = Path(profile, 1, 100.0)
    seen = {}
    for second in range(24):
        now = 100.0 + second
        path.offer(Way.UP, packet(), now)
        ((_, out),) = path.pop_due(now)
        assert out.flow is not None
        seen[second] = out.flow
        assert out.flow.server == SERVER
        assert out.flow.client.address == CLIENT.address
        # The answer to the binding of now comes back to the client's own port.
        path.offer(Way.DOWN, packet(flow=out.flow), now)
        assert path.pop_due(now) == [(Way.DOWN, packet())]
    changes = [second for second in range(1, 24) if seen[second] != seen[second - 1]]
    assert changes == [3, 13, 23]
    assert len(set(seen.values())) == 4
    assert path.tally().rebindings == 3
    # What still goes to the old binding is nobody's.
    path.offer(Way.DOWN, packet(flow=seen[0]), 124.0)
    assert path.pop_due(200.0) == []
    tally = path.tally()
    assert (tally.down.unbound, tally.down.offered, tally.up.unbound) == (1, 25, 0)
    # Also once there are no bindings left.
    path.offer(Way.DOWN, packet(flow=seen[23]), 133.0)
    assert path.tally().down.unbound == 2
    assert path.tally().rebindings == 3


def test_an_icmp_error_finds_the_flow_that_it_is_about_and_keeps_none() -> None:
    block = Block(answer=Answer.DROP, first_packets=1)
    path = Path(Profile(name="p", nat=Nat(idle=10.0), block=block), 1, 0.0)
    inside = QuotedFlow(*FLOW)
    # Nothing is bound: the client cannot have got what it complains of.
    path.offer(Way.UP, packet(flow=inside), 0.0)
    assert (path.tally().up.unbound, path.pop_due(0.0)) == (1, [])
    path.offer(Way.UP, packet(), 1.0)
    ((_, out),) = path.pop_due(1.0)
    assert out.flow is not None
    outside = QuotedFlow(*out.flow)
    for now in (2.0, 10.9):
        path.offer(Way.DOWN, packet(flow=outside), now)
        path.offer(Way.UP, packet(flow=inside), now)
        assert path.pop_due(now) == [
            (Way.UP, packet(flow=outside)),
            (Way.DOWN, packet(flow=inside)),
        ]
    path.offer(Way.DOWN, packet(flow=outside), 11.0)
    assert path.pop_due(11.0) == []
    assert (path.tally().down.unbound, path.tally().up.blocked) == (1, 0)
    # Without a NAT it passes as any other.
    plain = Path(Profile(name="p", block=block), 1, 0.0)
    plain.offer(Way.UP, packet(flow=inside), 0.0)
    assert plain.pop_due(0.0) == [(Way.UP, packet(flow=inside))]


def test_who_only_listens_is_unbound_by_a_rebinding() -> None:
    nat = Translation(Nat(rebind_every=5.0), 0.0)
    outside = nat.outward(FLOW, 0.0)
    assert nat.inward(outside, 4.9) == FLOW
    assert nat.inward(outside, 5.0) is None
    assert nat.rebindings == 0
    assert nat.outward(FLOW, 6.0) != outside
    assert nat.rebindings == 1


def test_a_strangers_packet_finds_no_binding() -> None:
    nat = Translation(Nat(), 0.0)
    outside = nat.outward(FLOW, 0.0)
    assert nat.inward(outside._replace(server=SERVER._replace(port=9)), 0.0) is None
    assert nat.inward(outside._replace(protocol=6), 0.0) is None
    # Without a schedule or idleness, a binding is for ever.
    assert nat.inward(outside, 1e9) == FLOW


@pytest.mark.parametrize("refresh", [False, True])
def test_an_idle_binding_is_forgotten(refresh: bool) -> None:
    nat = Translation(Nat(idle=30.0, inbound_refresh=refresh), 0.0)
    outside = nat.outward(FLOW, 0.0)
    assert nat.outward(FLOW, 29.9) == outside
    assert nat.inward(outside, 50.0) == FLOW
    # Only packets from inside keep it, unless the profile says otherwise.
    assert nat.inward(outside, 60.0) == (FLOW if refresh else None)
    assert (nat.outward(FLOW, 61.0) == outside) is refresh
    assert nat.rebindings == (0 if refresh else 1)


def test_each_flow_has_its_own_idleness_and_port() -> None:
    nat = Translation(Nat(idle=10.0), 0.0)
    one, two = nat.outward(from_port(1), 0.0), nat.outward(from_port(2), 5.0)
    assert one != two
    assert len(nat) == 2
    assert nat.inward(one, 12.0) is None
    assert nat.inward(two, 12.0) == from_port(2)
    assert len(nat) == 1


def test_bindings_are_bounded_by_the_ports_of_an_address() -> None:
    nat = Translation(Nat(), 0.0)
    flows = [Flow(17, Endpoint("h", number), SERVER) for number in range(MAX_BINDINGS + 1)]
    outside = [nat.outward(flow, float(number)) for number, flow in enumerate(flows[:-1])]
    assert len({flow.client.port for flow in outside}) == len(nat) == MAX_BINDINGS
    assert min(flow.client.port for flow in outside) == 1024
    assert max(flow.client.port for flow in outside) == 65535
    nat.outward(flows[0], 1e6)
    assert nat.forgotten == 0
    # The second is the one least recently used: its port is given away.
    assert nat.outward(flows[-1], 1e6).client.port == outside[1].client.port
    assert (nat.forgotten, len(nat), nat.rebindings) == (1, MAX_BINDINGS, 0)
    assert nat.outward(flows[0], 1e6) == outside[0]


def test_what_once_was_bound_is_remembered_within_a_bound() -> None:
    nat = Translation(Nat(rebind_every=1000.0), 0.0)
    for number in range(MAX_BINDINGS):
        nat.outward(Flow(17, Endpoint("h", number), SERVER), 0.0)
    nat.outward(FLOW, 1000.0)
    assert nat.rebindings == 0
    # FLOW, lost last, pushes the oldest of them out of the memory.
    nat.outward(Flow(17, Endpoint("h", 0), SERVER), 2000.0)
    assert nat.rebindings == 0
    nat.outward(Flow(17, Endpoint("h", 1), SERVER), 2000.0)
    nat.outward(FLOW, 2000.0)
    assert nat.rebindings == 2


def test_a_nat_needs_time_between_rebindings() -> None:
    with pytest.raises(ValueError, match=r"rebind every 0.0 s"):
        Path(Profile(name="p", nat=Nat(rebind_every=0.0)), 1, 0.0)


def test_all_at_once_and_nothing_is_lost_from_the_books() -> None:
    lossy = Conditions(delay=0.02, loss=RandomLoss(rate=0.1), mtu=Mtu(size=1300))
    profile = Profile(
        name="p",
        up=lossy,
        down=lossy,
        block=Block(first_packets=50),
        police=Police(bits_per_second=100_000.0, burst=5000),
        nat=Nat(rebind_every=1.0, idle=0.3),
    )
    path = Path(profile, 1, 0.0)
    taken = dict.fromkeys(Way, 0)
    flow = FLOW
    for number in range(4000):
        now = number * 0.005
        way = Way.UP if number % 3 else Way.DOWN
        protocol = 6 if number % 5 else 17
        sender = flow if way is Way.DOWN else FLOW
        path.offer(way, packet(100 + number % 1400, sender._replace(protocol=protocol)), now)
        for out, each in path.pop_due(now):
            taken[out] += 1
            if out is Way.UP and each.flow is not None:
                flow = each.flow
    tally = path.tally()
    for each_way, one in ((Way.UP, tally.up), (Way.DOWN, tally.down)):
        assert law(one.link)
        assert one.link.delivered == taken[each_way]
        assert one.too_big
    assert tally.up.offered + tally.down.offered == 4000
    assert tally.down.unbound
    assert tally.up.blocked
    assert tally.rebindings > 10
