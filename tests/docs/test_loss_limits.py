"""The limits of docs/loss-testing.md are those of the code, and none is left out."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT, table
from tests.docs.test_loss_testing import PAGE
from tests.docs.test_server_behaviour import constants, names, number, ticked, values

LIMITS = table(PAGE, "limit")

# Numbers that bound nothing: codes of the kernel, formats, arithmetic, what is usual or shown,
# and how sure a figure is.
NO_LIMITS = {
    "EDGE", "LATE_TOLERANCE", "SURE_SIGMAS", "_ENOUGH_FADES", "_FEWEST_BATCHES", "_FEW_BURSTS",
    "_MEMORIES", "_MORE", "_MOST", "_STUDENT", "BAD_PROFILE", "NAMED",
    "_ICMPV6_QUERIES", "_ICMP_HEADER",
    "CLONE_NEWNET", "CLONE_NEWNS", "CLONE_NEWPID", "CLONE_NEWUSER", "CONFIDENCE", "COULD_NOT",
    "DEFAULT_POLICE_BURST", "DEFAULT_QUEUE", "DELAY_TOLERANCE", "FEW", "IFF_NO_PI", "IFF_TUN",
    "LARGEST_FRAME", "LEAST_BUCKET", "LEAST_DELAY", "LENGTH", "LEVEL", "LINK_HEADER", "LONG",
    "LONGEST_SHOWN", "NOT_EXECUTABLE", "NOT_FOUND", "OPPORTUNITY", "PACKET_BITS", "PRIORITY",
    "PR_SET_PDEATHSIG", "PR_SET_TIMERSLACK", "RELAY_RATE", "SEED", "SIOCETHTOOL", "SMALLEST",
    "STEP", "SURE", "TCP", "TUNSETIFF", "UDP", "USUAL_PACKETS", "USUAL_TIME", "_ALIGNMENT",
    "_ALL_ONES", "_ANCILLARY", "_AUTHENTICATION", "_BATCHES", "_BINS", "_COPIES",
    "_CUT", "_DRAIN_EVERY", "_ETHERNET", "_ETH_P_ALL", "_FAR", "_FIRST_INFORMATION",
    "_FIRST_PORT", "_FRAGMENT", "_HIGHEST_PORT", "_HOPS", "_ICMP", "_ICMPV6", "_IFF_NO_PI",
    "_IFF_TAP", "_IFF_VNET_HDR", "_IPV4_AND_UDP", "_IPV4_HEADER", "_IPV4_LIMIT", "_IPV6_AND_UDP",
    "_IPV6_HEADER", "_IPV6_LIMIT", "_LATE", "_MARGIN", "_MS_NODEV", "_MS_NOEXEC",
    "_MS_NOSUID", "_MS_REC", "_MS_SLAVE", "_PACKET_IGNORE_OUTGOING", "_PACKET_STATISTICS",
    "_PARETO_MEAN", "_PARETO_SPREAD", "_PAST", "_PMTUDISC_PROBE", "_PROGRESS_EVERY", "_REDIRECT",
    "_SEED", "_SELECTABLE", "_SHAPE", "_SHARE", "_SIGMAS", "_SI_KERNEL", "_SMALLEST",
    "_SOL_PACKET", "_SO_NO_CHECK", "_SO_RCVBUFFORCE", "_SO_RXQ_OVFL", "_SO_TIMESTAMPNS", "_STEP",
    "_TUNSETIFF", "_UDP", "_UDP_NO_CHECK6_RX", "_UDP_NO_CHECK6_TX", "_UNREACHABLE", "_USUAL_RATE",
}  # fmt: skip


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: f"{row['limit']} {row['file']}")
def test_limits_have_the_values_of_the_code(row: dict[str, str]) -> None:
    if row["limit"].startswith("**"):
        return
    (name,), (path,) = names(row), ticked(row["file"])
    assert values(name, [path]) == pytest.approx([number(row["value"])]), f"{path}: {name}"
    assert row["at the bound"]


def test_every_numeric_constant_is_a_listed_limit_or_known_to_be_none() -> None:
    """A new bound needs a row; a new number that bounds nothing a word in NO_LIMITS."""
    listed = {(name, path) for row in LIMITS for name in names(row) for path in ticked(row["file"])}
    found = {
        (name, path.relative_to(ROOT).as_posix())
        for path in sorted((ROOT / "netem").rglob("*.py"))
        for name in constants(path)
    }
    assert sorted(each for each in found - listed if each[0] not in NO_LIMITS) == []
    # None of them is gone.
    assert NO_LIMITS <= {name for name, path in found - listed}
