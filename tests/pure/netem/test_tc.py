"""Profiles as lines of tc, nft and ip: the exact lines, and what they leave out."""

import pytest

from netem.profile.conditions import (
    Answer,
    Blackout,
    Block,
    Conditions,
    Distribution,
    Fades,
    GilbertElliott,
    Jitter,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Rate,
    Schedule,
    Way,
)
from netem.tc import Ends, Hop, plan, printed, shell

ROUTER = Hop(to_client="rc", to_server="rs")
SERVER = Hop(to_client="eth0")
CLIENT = Hop(to_server="eth0")
ENDS = Ends(client=("198.18.0.2", "fd00::2"), server=("198.18.0.1",))


def up(conditions: Conditions) -> list[str]:
    """The lines for the device toward the server, without their first words."""
    made = plan(Profile(name="mine", up=conditions), ROUTER)
    lines = [shell(command) for command in made.apply]
    start = "tc qdisc add dev rs "
    assert all(line.startswith(start) for line in lines)
    return [line.removeprefix(start) for line in lines]


def firewall(profile: Profile, hop: Hop = ROUTER, port: int | None = None) -> list[str]:
    made = plan(profile, hop, udp_port=port)
    assert all(command[0] == "nft" for command in made.apply)
    return [command[1] for command in made.apply]


def test_nothing_needs_no_line() -> None:
    made = plan(Profile(name="clear"), ROUTER)
    assert made.apply == made.undo == made.cannot == ()


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (Conditions(delay=0.03), "delay 30ms"),
        (Conditions(delay=0.000_05), "delay 0.05ms"),
        (Conditions(delay=60.0), "delay 60000ms"),
        (Conditions(loss=RandomLoss(rate=0.05)), "loss 5%"),
        (Conditions(loss=RandomLoss(rate=1e-7)), "loss 0.00001%"),
        (Conditions(loss=GilbertElliott.of_mean(0.05, 3)), "loss gemodel 1.7544% 33.333%"),
        (
            Conditions(
                loss=GilbertElliott(to_bad=0.01, to_good=0.3, loss_bad=0.8, loss_good=0.001)
            ),
            "loss gemodel 1% 30% 80% 0.1%",
        ),
        (
            Conditions(corrupt=0.01, duplicate=0.02, delay=0.01, reorder=0.03),
            "delay 10ms corrupt 1% duplicate 2% reorder 3%",
        ),
        # Order is kept by a rate that costs nothing.
        (
            Conditions(delay=0.03, jitter=Jitter(spread=0.005)),
            "delay 30ms 5ms distribution normal rate 10gbit",
        ),
        (
            Conditions(jitter=Jitter(spread=0.005, distribution=Distribution.PARETO)),
            "delay 0.001ms 5ms distribution pareto rate 10gbit",
        ),
        (
            Conditions(
                delay=0.03,
                jitter=Jitter(spread=0.005, distribution=Distribution.UNIFORM, reordering=True),
            ),
            "delay 30ms 5ms",
        ),
    ],
)
def test_netem_has_room_for_the_delay_line(conditions: Conditions, words: str) -> None:
    assert up(conditions) == [f"root handle 7e: netem limit 100000 {words}"]


STAB = "stab overhead -14 linklayer ethernet"


def test_a_rate_alone_is_a_tbf_over_a_queue_of_packets() -> None:
    assert up(Conditions(bottleneck=Rate(bits_per_second=9e6, queue=25))) == [
        f"root handle 7e: {STAB} tbf rate 9mbit burst 3100 limit 40000",
        "parent 7e:1 handle 7f: pfifo limit 25",
    ]
    # A bucket holds a millisecond of a fast line.
    assert up(Conditions(bottleneck=Rate(bits_per_second=1.5e9, queue=1))) == [
        f"root handle 7e: {STAB} tbf rate 1.5gbit burst 187500 limit 187500",
        "parent 7e:1 handle 7f: pfifo limit 1",
    ]


@pytest.mark.parametrize(("rate", "words"), [(768e3, "768kbit"), (500.0, "500bit")])
def test_a_rate_has_the_unit_that_fits(rate: float, words: str) -> None:
    first = up(Conditions(bottleneck=Rate(bits_per_second=rate, queue=1)))[0]
    assert f"tbf rate {words} " in first


def test_the_bottleneck_lies_below_netem() -> None:
    conditions = Conditions(delay=0.01, bottleneck=Rate(bits_per_second=9e6, queue=25))
    assert up(conditions) == [
        "root handle 7e: netem limit 100000 delay 10ms",
        "parent 7e:1 handle 7f: netem limit 25 rate 9mbit -14",
    ]


def test_no_second_netem_lies_below_one_that_duplicates() -> None:
    conditions = Conditions(
        delay=0.01, duplicate=0.02, bottleneck=Rate(bits_per_second=9e6, queue=25)
    )
    assert up(conditions) == [
        f"root handle 7e: {STAB} netem limit 100000 delay 10ms duplicate 2%",
        "parent 7e:1 handle 7f: tbf rate 9mbit burst 3100 limit 40000",
        "parent 7f:1 handle 80: pfifo limit 25",
    ]
    for lines in (up(conditions), up(Conditions(duplicate=0.02))):
        assert sum("netem" in line for line in lines) == 1


def test_each_direction_is_shaped_where_it_leaves_and_undone_by_handle() -> None:
    profile = Profile(name="mine", up=Conditions(delay=0.01), down=Conditions(delay=0.02))
    made = plan(profile, ROUTER)
    assert [shell(command) for command in made.apply] == [
        "tc qdisc add dev rs root handle 7e: netem limit 100000 delay 10ms",
        "tc qdisc add dev rc root handle 7e: netem limit 100000 delay 20ms",
    ]
    assert [shell(command) for command in made.undo] == [
        "tc qdisc del dev rs root handle 7e:",
        "tc qdisc del dev rc root handle 7e:",
    ]


def test_an_end_host_shapes_what_leaves_it_and_says_so() -> None:
    profile = Profile(name="mine", up=Conditions(delay=0.01), down=Conditions(delay=0.02))
    on_server, on_client = plan(profile, SERVER), plan(profile, CLIENT)
    assert [shell(command) for command in on_server.apply] == [
        "tc qdisc add dev eth0 root handle 7e: netem limit 100000 delay 20ms"
    ]
    assert on_server.cannot == (
        "up: a device shapes only what leaves it; run the lines on the other end too, "
        "or on a router",
    )
    assert [shell(command) for command in on_client.apply] == [
        "tc qdisc add dev eth0 root handle 7e: netem limit 100000 delay 10ms"
    ]
    assert on_client.cannot[0].startswith("down: ")


def test_a_hop_has_a_device() -> None:
    with pytest.raises(ValueError, match="give to_client, to_server or both"):
        Hop()


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer.DROP, "drop"),
        (Answer.REJECT, "reject with icmpx port-unreachable"),
        (Answer.PROHIBIT, "reject with icmpx admin-prohibited"),
    ],
)
def test_udp_is_blocked_both_ways_in_both_families(answer: Answer, verdict: str) -> None:
    assert firewall(Profile(name="mine", block=Block(answer=answer))) == [
        "create table inet tenuto_netem",
        "add chain inet tenuto_netem forward "
        "{ type filter hook forward priority 0 ; policy accept ; }",
        'add rule inet tenuto_netem forward iifname "rc" oifname "rs" '
        f'meta l4proto udp counter {verdict} comment "blocked up"',
        'add rule inet tenuto_netem forward iifname "rs" oifname "rc" '
        f'meta l4proto udp counter {verdict} comment "blocked down"',
    ]


def test_the_server_s_port_and_the_table_s_end() -> None:
    profile = Profile(name="mine", block=Block(), udp_port=4433)
    assert " udp dport 4433 " in firewall(profile)[2]
    assert " udp sport 4433 " in firewall(profile)[3]
    assert " udp dport 443 " in firewall(profile, port=443)[2]
    assert plan(profile, ROUTER).undo == (("nft", "delete table inet tenuto_netem"),)


def test_on_an_end_host_the_hooks_are_input_and_output() -> None:
    profile = Profile(name="mine", block=Block())
    on_server, on_client = firewall(profile, SERVER)[3:], firewall(profile, CLIENT)[3:]
    assert 'input iifname "eth0"' in on_server[0]
    assert '"blocked up"' in on_server[0]
    assert 'output oifname "eth0"' in on_server[1]
    assert 'output oifname "eth0"' in on_client[0]
    assert 'input iifname "eth0"' in on_client[1]
    # A drop on the way out is not silent there: the kernel tells the program.
    for hop, way in ((SERVER, "down"), (CLIENT, "up")):
        told = plan(profile, hop).cannot
        assert [text.partition(":")[0] for text in told] == [way]
        assert "Operation not permitted" in told[0]
    assert plan(profile, ROUTER).cannot == ()
    silent = Profile(name="mine", up=Conditions(mtu=Mtu(size=1_280)))
    assert "Operation not permitted" in plan(silent, CLIENT).cannot[0]
    assert plan(silent, SERVER).cannot == ()


def test_the_first_packets_of_a_flow_are_counted_in_a_set() -> None:
    lines = firewall(Profile(name="mine", block=Block(first_packets=20)), port=443)
    assert [line.split()[4] for line in lines[2:6]] == ["up_ip", "up_ip6", "down_ip", "down_ip6"]
    assert lines[3] == (
        "add set inet tenuto_netem up_ip6 "
        "{ type ipv6_addr . inet_service . ipv6_addr . inet_service ; size 65536 ; "
        "flags dynamic,timeout ; timeout 1h ; }"
    )
    assert lines[6] == (
        'add rule inet tenuto_netem forward iifname "rc" oifname "rs" udp dport 443 update @up_ip '
        "{ ip saddr . udp sport . ip daddr . udp dport limit rate over 1/day burst 20 packets } "
        'counter drop comment "blocked up"'
    )
    assert len(lines) == 10


def test_a_block_of_one_way_has_no_rule_for_the_other() -> None:
    lines = firewall(Profile(name="mine", block=Block(first_packets=20, way=Way.DOWN)))
    assert [line.split()[4] for line in lines[2:4]] == ["down_ip", "down_ip6"]
    assert len(lines) == 6
    profile = Profile(name="mine", block=Block(way=Way.DOWN))
    assert 'comment "blocked down"' in firewall(profile)[2]
    assert len(firewall(profile)) == 3
    assert plan(profile, CLIENT).cannot == ()
    assert "Operation not permitted" in plan(profile, SERVER).cannot[0]


def test_police_counts_the_second_that_nft_s_bucket_holds_anyway() -> None:
    lines = firewall(Profile(name="mine", police=Police(bits_per_second=8e3, burst=3_000)))
    assert (
        "meta l4proto udp limit rate over 1000 bytes/second burst 2000 bytes counter drop"
        in lines[2]
    )
    smaller = Profile(name="mine", police=Police(bits_per_second=8e6, burst=3_000))
    assert "limit rate over 1000000 bytes/second counter drop" in firewall(smaller)[2]
    assert plan(smaller, ROUTER).cannot == (
        "udp.police_burst: nft's bucket holds at least a second of the rate; "
        "the tun and veth drivers keep to it",
    )


def test_a_black_hole_for_large_packets_is_a_rule() -> None:
    profile = Profile(name="mine", down=Conditions(mtu=Mtu(size=1_280)))
    assert firewall(profile)[2] == (
        'add rule inet tenuto_netem forward iifname "rs" oifname "rc" '
        'meta length > 1280 counter drop comment "too big down"'
    )


def test_an_mtu_that_answers_is_a_route_to_each_address() -> None:
    answering = Conditions(mtu=Mtu(size=1_280, answers=True))
    profile = Profile(name="mine", up=answering, down=answering)
    made = plan(profile, ROUTER, ends=ENDS)
    assert [shell(command) for command in made.apply] == [
        "ip -4 route add 198.18.0.1 dev rs mtu lock 1280",
        "ip -4 route add 198.18.0.2 dev rc mtu lock 1280",
        "ip -6 route add fd00::2 dev rc mtu lock 1280",
    ]
    assert shell(made.undo[0]) == "ip -4 route del 198.18.0.1 dev rs mtu lock 1280"
    assert made.cannot == ()


def test_an_mtu_that_answers_needs_a_router_that_knows_both_ends() -> None:
    profile = Profile(name="mine", up=Conditions(mtu=Mtu(size=1_280, answers=True)))
    for made in (plan(profile, ROUTER), plan(profile, CLIENT, ends=ENDS)):
        assert made.apply == ()
        assert made.cannot[0].startswith("up.too_big: ")


def test_what_tc_cannot_do_is_named_with_who_can() -> None:
    profile = Profile(
        name="mine",
        up=Conditions(fades=Fades(every=5.0, length=0.1), blackouts=(Blackout(start=0, length=1),)),
        down=Conditions(bottleneck=Schedule(opportunities=(1,), queue=3)),
        nat=Nat(idle=30.0),
    )
    made = plan(profile, ROUTER)
    assert made.apply == ()
    assert [text.partition(":")[0] for text in made.cannot] == [
        "up.fade",
        "up.blackout",
        "down.trace",
        "nat",
    ]
    assert all("driver" in text for text in made.cannot)


def test_a_jitter_that_netem_would_cut_off_is_named() -> None:
    made = [
        plan(Profile(name="mine", up=Conditions(delay=9.0, jitter=Jitter(spread=spread))), ROUTER)
        for spread in (2.1, 2.2)
    ]
    assert [len(each.cannot) for each in made] == [0, 1]
    assert made[1].cannot[0].startswith("up.jitter: netem's ends at 2.147 s")


def test_printed_is_what_an_engineer_would_type() -> None:
    profile = Profile(
        name="mine",
        summary="A test",
        down=Conditions(delay=0.01, blackouts=(Blackout(start=0, length=1),)),
        block=Block(),
    )
    assert printed(profile, ROUTER, udp_port=443) == [
        "# mine: A test",
        "# not done by these lines: down.blackout: tc has no schedule; use the tun or veth driver",
        "tc qdisc add dev rc root handle 7e: netem limit 100000 delay 10ms",
        "nft 'create table inet tenuto_netem'",
        "nft 'add chain inet tenuto_netem forward "
        "{ type filter hook forward priority 0 ; policy accept ; }'",
        'nft \'add rule inet tenuto_netem forward iifname "rc" oifname "rs" udp dport 443 '
        'counter drop comment "blocked up"\'',
        'nft \'add rule inet tenuto_netem forward iifname "rs" oifname "rc" udp sport 443 '
        'counter drop comment "blocked down"\'',
        "# to undo",
        "tc qdisc del dev rc root handle 7e:",
        "nft 'delete table inet tenuto_netem'",
    ]
    assert printed(Profile(name="clear"), ROUTER) == ["# clear"]
