"""The same profiles through our own link and through a real netem, in turn, on this machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from netem.drivers.bed import Bed
from netem.drivers.tun import TunBed
from netem.measure.agreement import Agreement, Side, agreements
from netem.measure.model import linger_of
from netem.measure.over_bed import measure_bed
from netem.measure.plan import Plan
from netem.measure.running import Measurement
from netem.profile.conditions import Profile, Way
from netem.vm.bed import VmBed

__all__ = ["TRIALS", "Trial", "side_by_side", "trial_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A profile, and the load that shows what it does."""

    profile: Profile
    plan: Plan
    ipv6: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    seconds: float = 2.0
    rate: float = 2_000.0
    size: int = 100
    ipv6: bool = False


TRIALS: Final = MappingProxyType(
    {
        "loss5": _Load(seconds=1.5, rate=4_000.0),
        "loss5-burst": _Load(seconds=2.0, rate=4_000.0, ipv6=True),
        # A fifth of its uplink: enough that what jitter has bunched waits at the bottleneck.
        "4g": _Load(seconds=5.0, rate=300.0),
        # A fifth more than its 10 Mbit/s take, so the queue is full and drops.
        "interop": _Load(seconds=1.6, rate=1_250.0, size=1_200),
        "udp-blocked-drop": _Load(seconds=0.3),
        "udp-blocked-reject": _Load(seconds=0.3, ipv6=True),
        "udp-blocked-prohibit": _Load(seconds=0.3),
        "udp-blocked-first-packet": _Load(seconds=0.3),
        "udp-blocked-after-handshake": _Load(seconds=0.3),
    }
)
"""What is compared unless told otherwise, by the name of the profile."""

_FLOOR: Final = Plan(packets=2_000, rate=2_000.0, linger=0.3)
_CLEAR: Final = Profile(name="clear")


def trial_of(profile: Profile, *, ipv6: bool | None = None) -> Trial:
    """The load that is known to suit a built-in profile, or a usual one."""
    load = TRIALS.get(profile.name, _Load())
    plan = Plan(packets=max(1, round(load.seconds * load.rate)), rate=load.rate, size=load.size)
    return Trial(
        profile=profile,
        plan=replace(plan, linger=linger_of(profile, plan)),
        ipv6=load.ipv6 if ipv6 is None else ipv6,
    )


def side_by_side(
    trials: Sequence[Trial],
    seed: int,
    on_step: Callable[[str], None] = lambda what: None,
) -> Iterator[Agreement]:
    """Measure each trial through both, one after the other, for they share the processors."""
    on_step("the machine starts")
    with VmBed(_CLEAR) as machine:
        on_step("an empty path through the machine")
        floors = _floors(_measured(machine, Trial(profile=_CLEAR, plan=_FLOOR)))
        for trial in trials:
            on_step(trial.profile.name)
            machine.apply(trial.profile)
            theirs = _side(_measured(machine, trial))
            with TunBed(trial.profile, seed) as bed:
                ours = _side(_measured(bed, trial))
            yield from agreements(trial.profile, ours, theirs, floors, ipv6=trial.ipv6)


def _measured(bed: Bed, trial: Trial) -> Measurement:
    """Again, once, where the machine was too busy to send in time."""
    measurement = measure_bed(bed, trial.profile, trial.plan, ipv6=trial.ipv6)
    if not measurement.starved:
        return measurement
    bed.restart()
    return measure_bed(bed, trial.profile, trial.plan, ipv6=trial.ipv6)


def _side(measurement: Measurement) -> Side:
    return Side(measurement.directions, measurement.recorded.records)


def _floors(measurement: Measurement) -> dict[Way, float]:
    return {
        way: direction.delays.median if direction.delays else 0.0
        for way, direction in measurement.directions.items()
    }
