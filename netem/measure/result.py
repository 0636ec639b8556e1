"""A measurement with its verdict: what is printed, and what is written as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from netem.measure.model import IP_AND_UDP, model
from netem.measure.running import Measurement
from netem.measure.verdict import Row, compare
from netem.profile.conditions import Profile, Way

__all__ = ["Result", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    profile: str
    driver: str
    seed: int
    ipv6: bool
    measurement: Measurement
    rows: tuple[Row, ...]

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
            "rows": [{**asdict(row), "way": row.way.value} for row in self.rows],
            "directions": {
                way.value: asdict(direction) for way, direction in measurement.directions.items()
            },
        }


def judge(
    profile: Profile, driver: str, seed: int, measurement: Measurement, *, ipv6: bool
) -> Result:
    """Hold a measurement to the profile."""
    headers = IP_AND_UDP[ipv6]
    sent_at: Mapping[Way, tuple[float, ...]] = {
        way: record.sent_at for way, record in measurement.recorded.records.items()
    }
    payload = measurement.plan.size
    # Bits are turned in bytes that a model does not have; the formulas know about them.
    whole = replace(
        profile,
        up=replace(profile.up, corrupt=0.0),
        down=replace(profile.down, corrupt=0.0),
    )
    rows = compare(
        profile,
        measurement.directions,
        measurement.recorded.records,
        model(whole, seed, sent_at, payload + headers),
        payload=payload,
        headers=headers,
    )
    return Result(
        profile=profile.name,
        driver=driver,
        seed=seed,
        ipv6=ipv6,
        measurement=measurement,
        rows=tuple(rows),
    )
