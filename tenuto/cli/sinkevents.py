"""What happens at the sink, in the past tense, and its account."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # only a loudspeaker needs them, and they take their time to load
    from tenuto.cli.tally import LeftOut, Made
    from tenuto.playout import PlayoutSnapshot

__all__ = [
    "BufferUnderrun",
    "DeviceLost",
    "DeviceOpened",
    "DeviceUnderflow",
    "SinkAccount",
    "SinkEvent",
]


@dataclass(frozen=True, slots=True)
class DeviceOpened:
    """A loudspeaker plays: the `count`-th one, so 1 unless others were lost before.

    `latency` is in seconds, by its own word.
    """

    name: str
    rate: int
    channels: int
    latency: float
    count: int


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """The loudspeaker is given up, and asked for anew."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeviceUnderflow:
    """The device got its samples too late; `count` is how often since the beginning."""

    count: int


@dataclass(frozen=True, slots=True)
class BufferUnderrun:
    """The network was too late and playout waited; `count` as above."""

    count: int


SinkEvent = DeviceOpened | DeviceLost | DeviceUnderflow | BufferUnderrun


@dataclass(frozen=True, slots=True)
class SinkAccount:
    """The loudspeaker as it is now. Durations in seconds."""

    playout: PlayoutSnapshot
    made: Made
    left_out: LeftOut
    device: DeviceOpened | None
    reopened: int
    underflows: int

    def fields(self) -> dict[str, Any]:
        """For the summary."""
        playout = asdict(self.playout)
        del playout["now"], playout["histogram"]
        # Samples of different rates have no sum.
        for name, seconds in asdict(self.made).items():
            del playout[f"{name}_samples"]
            playout[f"{name}_ms"] = 1000 * seconds
        playout["left_out"] = self.left_out.played + self.left_out.concealed
        playout["left_out_ms"] = 1000 * self.left_out.seconds
        device = None if self.device is None else asdict(self.device)
        if device is not None:
            del device["count"]
            device["latency"] = round(device["latency"], 6)
        return {
            "playout": {name: _rounded(value) for name, value in playout.items()},
            "device": device,
            "device_reopened": self.reopened,
            "device_underflows": self.underflows,
        }


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
