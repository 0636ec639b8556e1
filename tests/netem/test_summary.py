"""What a run tells at its end: counts beside settings, and when not to believe them."""

from __future__ import annotations

import pytest

from netem.cli.summary import LATE, SPIKE, Outcome, as_json, as_lines, expectations
from netem.drivers.report import BedTally, Lateness
from netem.link.tally import PathTally, Tally, WayTally
from netem.profile import (
    Conditions,
    Fades,
    GilbertElliott,
    Jitter,
    Profile,
    RandomLoss,
    Rate,
    Schedule,
)

SIDE = Conditions(
    delay=0.03,
    jitter=Jitter(spread=0.005),
    loss=RandomLoss(rate=0.05),
    bottleneck=Rate(bits_per_second=1e6, queue=10),
)
PASSED = Tally(offered=20_000, delivered=19_000, lost=1_000, delay_total=0.03 * 19_000)
LINES = (
    "mine, seed 7, driver tun: 12.0 s, status 0",
    "   up: 20,000 packets; 1,000 lost (5.00 %, set 5 %)",
    "       delay 31.00 ms on average (set 30 ms, normal jitter 5 ms, and the wait at 1 Mbit/s)",
    " down: 0 packets; 0 lost (none to judge by, set 5 %)",
    "       delay unknown: nothing was delivered "
    "(set 30 ms, normal jitter 5 ms, and the wait at 1 Mbit/s)",
    "emulator: p50 0.10 ms, p99 1.00 ms, at most 5.00 ms late",
)


def outcome(
    *,
    up: WayTally | None = None,
    lateness: Lateness | None = None,
    behind: float = 0.0,
    unread: int = 0,
    write_errors: int = 0,
    unscheduled: str | None = None,
) -> Outcome:
    tally = BedTally(
        path=PathTally(up=up or WayTally(link=PASSED), down=WayTally(link=Tally())),
        lateness=lateness or Lateness(count=1, p50=1e-4, p99=1e-3, max=0.005, mean=0.001),
        behind=behind,
        unread=unread,
        write_errors=write_errors,
        unscheduled=unscheduled,
    )
    profile = Profile(name="mine", up=SIDE, down=SIDE)
    return Outcome(profile=profile, seed=7, driver="tun", status=0, seconds=12.0, tally=tally)


def test_counts_stand_beside_what_was_set() -> None:
    assert tuple(as_lines(outcome())) == LINES


def test_every_fate_is_named() -> None:
    fates = dict.fromkeys(
        ("faded", "blacked_out", "queue_dropped", "duplicated", "corrupted", "reordered"), 3
    )
    up = WayTally(link=Tally(offered=100, **fates), blocked=1, policed=2, too_big=4, unbound=8)
    line = list(as_lines(outcome(up=up)))[1]
    assert line.startswith("   up: 115 packets")
    for words in (
        *("3 faded (3.00 %)", "3 blacked out", "3 dropped by the queue", "3 duplicated"),
        *("3 corrupted", "3 reordered", "1 blocked", "2 policed", "4 too big"),
        "8 without a NAT binding (6.96 %)",
    ):
        assert words in line


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (outcome(behind=LATE * 4), "the emulator itself was up to 8.0 ms late"),
        (outcome(unread=3), "3 packets were lost by the bed, not by the profile"),
        (outcome(write_errors=1), "1 packet was not taken by the receiver's device"),
    ],
)
def test_figures_of_the_machine_are_told_apart(said: Outcome, words: str) -> None:
    warnings = [line for line in as_lines(said) if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert words in warnings[0]
    assert as_json(said)["warnings"] == warnings


def test_a_late_emulator_is_told() -> None:
    late = Lateness(count=9, p50=0.001, p99=0.003, max=0.004, mean=0.001)
    said = list(as_lines(outcome(lateness=late, unscheduled="Operation not permitted")))
    assert "at normal priority (Operation not permitted)" in said[-2]
    assert said[-1].startswith("warning: the emulator itself was up to 4.0 ms late")


def test_one_very_late_packet_among_many_is_told() -> None:
    late = Lateness(count=9_999, p50=0.0001, p99=0.0002, max=SPIKE * 2, mean=0.0001)
    said = list(as_lines(outcome(lateness=late)))
    assert said[-1].startswith("warning: the emulator itself was up to 20.0 ms late")


def test_what_overflowed_is_told() -> None:
    up = WayTally(link=Tally(offered=9, overflowed=2))
    said = list(as_lines(outcome(up=up)))
    assert "2 overflowed" in said[1]
    assert "2 packets were above what the emulator holds" in said[-1]


def test_expected_shares() -> None:
    burst = GilbertElliott.of_mean(0.05, 3.0)
    fades = Fades(every=10.0, length=1.0, loss=0.5)
    said = expectations(
        Conditions(loss=burst, fades=fades, duplicate=0.01, corrupt=0.02, reorder=0.03)
    )
    assert said == {
        "lost": pytest.approx(0.05),
        "faded": pytest.approx(0.05),
        "duplicated": 0.01,
        "corrupted": 0.02,
        "reordered": 0.03,
    }


def test_a_trace_is_named() -> None:
    side = Conditions(bottleneck=Schedule(opportunities=(1,), queue=3, name="drive.trace"))
    said = Outcome(
        profile=Profile(name="mine", up=side),
        seed=1,
        driver="veth",
        status=3,
        seconds=1.0,
        tally=BedTally(path=PathTally(up=WayTally(link=PASSED), down=WayTally(link=Tally()))),
        notes=("a note",),
    )
    text = "\n".join(as_lines(said))
    assert "and the wait for drive.trace" in text
    assert "emulator" not in text
    assert text.endswith("a note")


def test_what_the_driver_cannot_count_is_no_zero() -> None:
    side = Conditions(delay=0.03, loss=RandomLoss(rate=0.05), duplicate=0.01)
    tally = BedTally(
        path=PathTally(
            up=WayTally(link=Tally(offered=9, delivered=9)), down=WayTally(link=Tally())
        ),
        uncounted=("delay", "duplicated", "corrupted"),
    )
    said = Outcome(
        profile=Profile(name="mine", up=side),
        seed=1,
        driver="tc",
        status=0,
        seconds=1.0,
        tally=tally,
    )
    lines = list(as_lines(said))
    assert lines[1] == (
        "   up: 9 packets; 0 lost (0.00 %, set 5 %); duplicated: not counted (set 1 %)"
    )
    assert lines[2] == "       delay not measured (set 30 ms)"
    measured = as_json(said)["measured"]
    assert measured == {"up": {"delay": None, "offered": 9}, "down": {"delay": None, "offered": 0}}
