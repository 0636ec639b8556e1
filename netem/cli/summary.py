"""What a run did, beside what its profile says: as lines and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from netem.cli.request import BY_KERNEL
from netem.drivers.report import BedTally
from netem.link.tally import WayTally
from netem.profile import Conditions, Fades, GilbertElliott, Profile, RandomLoss, Rate, Way

__all__ = ["LATE", "Outcome", "as_json", "as_lines"]

LATE: Final = 0.002
"""Seconds of the emulator's own lateness (p99) above which its delays are not to be believed."""

SPIKE: Final = 0.01
"""Seconds that no single packet may be late without being told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    profile: Profile
    seed: int
    driver: str
    status: int
    seconds: float
    tally: BedTally
    notes: tuple[str, ...] = ()
    """What this driver could not do or see."""


def as_lines(outcome: Outcome) -> Iterator[str]:
    yield (
        f"{outcome.profile.name}, seed {outcome.seed}, driver {outcome.driver}: "
        f"{outcome.seconds:.1f} s, status {outcome.status}"
    )
    path = outcome.tally.path
    for way, tally in ((Way.UP, path.up), (Way.DOWN, path.down)):
        yield f"{way:>5}: {_packets(tally.offered)}" + "".join(
            f"; {said}" for said in _fates(tally, outcome, way)
        )
        yield f"       {_delay(tally, outcome, way)}"
    if path.rebindings:
        yield f"  nat: {path.rebindings} rebindings"
    yield from _machinery(outcome.tally)
    yield from outcome.notes


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count:,} packets"


def _were(count: int) -> str:
    return f"{_packets(count)} {'was' if count == 1 else 'were'}"


def _fates(tally: WayTally, outcome: Outcome, way: Way) -> Iterator[str]:
    """Each kind that happened or was to happen."""
    link = tally.link
    expected = expectations(outcome.profile.conditions(way))
    counts = {
        "lost": link.lost,
        "faded": link.faded,
        "blacked out": link.blacked_out,
        "dropped by the queue": link.queue_dropped,
        "duplicated": link.duplicated,
        "corrupted": link.corrupted,
        "reordered": link.reordered,
        "overflowed": link.overflowed,
    }
    for kind, count in counts.items():
        if kind in outcome.tally.uncounted:
            if kind in expected:
                yield f"{kind}: not counted (set {100 * expected[kind]:g} %)"
        elif count or kind in expected:
            yield _share(kind, count, link.offered, expected.get(kind))
    gate = {
        "blocked": tally.blocked,
        "policed": tally.policed,
        "too big": tally.too_big,
        "without a NAT binding": tally.unbound,
    }
    for kind, count in gate.items():
        if count:
            yield _share(kind, count, tally.offered, None)


def _share(kind: str, count: int, of: int, expected: float | None) -> str:
    share = f"{100 * count / of:.2f} %" if of else "none to judge by"
    setting = "" if expected is None else f", set {100 * expected:g} %"
    return f"{count:,} {kind} ({share}{setting})"


def expectations(conditions: Conditions) -> dict[str, float]:
    """The mean share of each fate that the profile sets."""
    expected = {}
    match conditions.loss:
        case RandomLoss(rate=rate):
            expected["lost"] = rate
        case GilbertElliott() as model:
            bad = model.to_bad / (model.to_bad + model.to_good)
            expected["lost"] = bad * model.loss_bad + (1 - bad) * model.loss_good
        case None:
            pass
    if isinstance(conditions.fades, Fades):
        fades = conditions.fades
        expected["faded"] = fades.length / fades.every * fades.loss
    rates = {
        "duplicated": conditions.duplicate,
        "corrupted": conditions.corrupt,
        "reordered": conditions.reorder,
    }
    expected.update({kind: rate for kind, rate in rates.items() if rate})
    return expected


def mean_delay(tally: WayTally, outcome: Outcome) -> float | None:
    """As it was, with the emulator's own lateness; None where nobody looked at the clock."""
    if outcome.driver in BY_KERNEL:
        return None
    return tally.link.mean_delay + outcome.tally.lateness.mean


def _known_delay(tally: WayTally, outcome: Outcome) -> float | None:
    unknown = "delay" in outcome.tally.uncounted or not tally.link.delivered
    return None if unknown else mean_delay(tally, outcome)


def _delay(tally: WayTally, outcome: Outcome, way: Way) -> str:
    conditions = outcome.profile.conditions(way)
    setting = f"set {1e3 * conditions.delay:g} ms"
    if conditions.jitter is not None:
        jitter = conditions.jitter
        setting += f", {jitter.distribution} jitter {1e3 * jitter.spread:g} ms"
    if isinstance(conditions.bottleneck, Rate):
        setting += f", and the wait at {conditions.bottleneck.bits_per_second / 1e6:g} Mbit/s"
    elif conditions.bottleneck is not None:
        setting += f", and the wait for {conditions.bottleneck.name}"
    if "delay" in outcome.tally.uncounted:
        return f"delay not measured ({setting})"
    if not tally.link.delivered:
        return f"delay unknown: nothing was delivered ({setting})"
    found = mean_delay(tally, outcome)
    if found is None:
        return f"delay not measured: the kernel times no packet ({setting})"
    return f"delay {1e3 * found:.2f} ms on average ({setting})"


def _machinery(tally: BedTally) -> Iterator[str]:
    late = tally.lateness
    if late.count:
        yield (
            f"emulator: p50 {1e3 * late.p50:.2f} ms, p99 {1e3 * late.p99:.2f} ms, "
            f"at most {1e3 * late.max:.2f} ms late"
            + (f", at normal priority ({tally.unscheduled})" if tally.unscheduled else "")
        )
    yield from warnings(tally)


def warnings(tally: BedTally) -> Iterator[str]:
    """Why these figures may be the machine's instead of the profile's."""
    late = tally.lateness
    overflowed = tally.path.up.link.overflowed + tally.path.down.link.overflowed
    if late.p99 > LATE or late.max > SPIKE or tally.behind > LATE:
        worst = 1e3 * max(late.max, tally.behind)
        yield (
            f"warning: the emulator itself was up to {worst:.1f} ms late, so delays are longer "
            "than set; give it a quieter machine or fewer packets"
        )
    if tally.unread:
        yield f"warning: {_were(tally.unread)} lost by the bed, not by the profile"
    if overflowed:
        yield f"warning: {_were(overflowed)} above what the emulator holds under way"
    # A turned bit may make a packet that no device takes.
    refused = tally.write_errors - tally.path.up.link.corrupted - tally.path.down.link.corrupted
    if refused > 0:
        yield f"warning: {_were(refused)} not taken by the receiver's device"


def as_json(outcome: Outcome) -> dict[str, object]:
    """Counts as they are, seconds, and fractions."""
    ways = {Way.UP: outcome.tally.path.up, Way.DOWN: outcome.tally.path.down}
    return {
        "profile": outcome.profile.name,
        "seed": outcome.seed,
        "driver": outcome.driver,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
        "set": {
            way.value: {
                "delay": outcome.profile.conditions(way).delay,
                **expectations(outcome.profile.conditions(way)),
            }
            for way in Way
        },
        "measured": {
            way.value: {"delay": _known_delay(tally, outcome), "offered": tally.offered}
            for way, tally in ways.items()
        },
        "tally": asdict(outcome.tally),
        "warnings": list(warnings(outcome.tally)),
        "notes": list(outcome.notes),
    }
