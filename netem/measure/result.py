"""A measurement with its verdict: what is printed, and what is written as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from netem.measure.model import IP_AND_UDP, model
from netem.measure.plan import Record, Recorded
from netem.measure.running import Measurement
from netem.measure.untried import untried
from netem.measure.verdict import Row, compare
from netem.profile.conditions import Profile, Way

__all__ = ["Result", "judge"]


SEEDED: Final = ("tun", "veth", "relay")
"""Drivers whose packets have the fates that the link in virtual time gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    profile: str
    driver: str
    seed: int
    ipv6: bool
    measurement: Measurement
    rows: tuple[Row, ...]
    untried: tuple[str, ...] = ()
    """What the profile says and this measurement could not show."""
    warnings: tuple[str, ...] = ()
    """Why figures may be the machine's instead of the path's."""

    @property
    def agrees(self) -> bool:
        """Whether each figure that can be held to the profile is what it says."""
        return all(row.agrees is not False for row in self.rows)

    def as_json(self) -> dict[str, object]:
        measurement = self.measurement
        return {
            "profile": self.profile,
            "driver": self.driver,
            "seed": self.seed,
            "family": "ipv6" if self.ipv6 else "ipv4",
            "agrees": self.agrees,
            "starved": measurement.starved,
            "plan": asdict(measurement.plan),
            "not tried": list(self.untried),
            "warnings": list(self.warnings),
            "rows": [{**asdict(row), "way": row.way.value} for row in self.rows],
            "directions": {
                way.value: asdict(direction) for way, direction in measurement.directions.items()
            },
        }


def judge(
    profile: Profile,
    driver: str,
    seed: int,
    measurement: Measurement,
    *,
    ipv6: bool,
    started: int | None = None,
    warnings: tuple[str, ...] = (),
) -> Result:
    """Hold a measurement to the profile; `started` is when its path did, in ns of the clock."""
    headers = IP_AND_UDP[ipv6]
    payload = measurement.plan.size
    modelled = _modelled(profile, seed, measurement.recorded, payload + headers, started)
    rows = compare(
        profile,
        measurement.directions,
        measurement.recorded.records,
        modelled,
        payload=payload,
        # A relay has no headers to turn a bit in.
        headers=0 if driver == "relay" else headers,
        seeded=driver in SEEDED,
    )
    return Result(
        profile=profile.name,
        driver=driver,
        seed=seed,
        ipv6=ipv6,
        measurement=measurement,
        rows=tuple(rows),
        untried=tuple(untried(profile, measurement)),
        warnings=warnings + measurement.warnings,
    )


def _modelled(
    profile: Profile, seed: int, recorded: Recorded, size: int, started: int | None
) -> dict[Way, Record]:
    sent_at: Mapping[Way, tuple[float, ...]] = {
        way: record.sent_at for way, record in recorded.records.items()
    }
    # Bits are turned in bytes that a model does not have; the formulas know about them.
    whole = replace(
        profile,
        up=replace(profile.up, corrupt=0.0),
        down=replace(profile.down, corrupt=0.0),
    )
    began = None if started is None else (started - recorded.epoch) / 1e9
    return model(whole, seed, sent_at, size, began)
