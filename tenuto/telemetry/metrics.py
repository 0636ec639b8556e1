"""Gauges and counters for Prometheus, read from the owners' tallies when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["Metrics", "Reading", "counters"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One number. Counters only grow; their names get `_total` on the wire."""

    name: str
    help: str
    value: float
    counter: bool = False


class Metrics(Collector):
    """Names are fixed by the code that reads, never by what a client sent."""

    def __init__(self, read: Callable[[], Iterable[Reading]]) -> None:
        self._read = read
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Nothing in advance: registering must not read gauges that do not exist yet."""
        return []

    def collect(self) -> Iterable[Metric]:
        for reading in self._read():
            family = CounterMetricFamily if reading.counter else GaugeMetricFamily
            yield family(f"tenuto_{reading.name}", reading.help, value=reading.value)

    def render(self) -> str:
        """The text exposition format, version 0.0.4."""
        return generate_latest(self._registry).decode()


def counters(prefix: str, values: Mapping[str, float]) -> list[Reading]:
    """A tally's fields as counters."""
    return [
        Reading(f"{prefix}_{name}", f"{name.replace('_', ' ')} since the start", value, True)
        for name, value in values.items()
    ]
