"""A machine that is not equal to its task, in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from bench.lab.figures.validity import LIMITS, faults
from bench.lab.record import Machine

FINE = Machine(
    emulator_p99=0.001,
    emulator_max=0.020,
    behind=0.020,
    cores_busy=0.90,
    busiest=0.90,
    busiest_name="server",
    loop_lag=0.020,
    send_lag=0.020,
    unscheduled="no CAP_SYS_NICE",
)


def test_on_its_limits_a_wave_counts() -> None:
    assert faults(FINE) == ()
    assert faults(Machine()) == ()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"emulator_p99": 0.0042}, "emulator late, 99th percentile: 4.2 ms, the limit is 1.0 ms"),
        ({"emulator_max": 0.05}, "emulator late, at most: 50.0 ms, the limit is 20.0 ms"),
        ({"behind": 0.021}, "emulator away, at most: 21.0 ms, the limit is 20.0 ms"),
        ({"unread": 1}, "packets dropped unread by a device: 1, the limit is 0"),
        ({"write_errors": 2}, "packets the emulator could not write: 2, the limit is 0"),
        ({"overflowed": 12_000}, "packets above the emulator's bound: 12,000, the limit is 0"),
        ({"cores_busy": 0.97}, "all cores busy: 97 %, the limit is 90 %"),
        ({"busiest": 0.99}, "busiest process, of one core: 99 % (server), the limit is 90 %"),
        (
            {"busiest": 0.99, "busiest_name": ""},
            "busiest process, of one core: 99 %, the limit is 90 %",
        ),
        ({"loop_lag": 0.1}, "receiver's timer late, at most: 100.0 ms, the limit is 20.0 ms"),
        ({"send_lag": 0.03}, "sender late, at most: 30.0 ms, the limit is 20.0 ms"),
    ],
)
def test_a_fault_names_value_and_limit(changed: dict[str, Any], told: str) -> None:
    assert faults(replace(FINE, **changed)) == (told,)


def test_what_is_not_a_number_does_not_pass() -> None:
    assert len(faults(replace(FINE, cores_busy=math.nan))) == 1


def test_all_faults_are_told() -> None:
    broken = Machine(
        emulator_p99=1, emulator_max=1, behind=1, unread=1, write_errors=1, overflowed=1,
        cores_busy=1, busiest=1, loop_lag=1, send_lag=1,
    )  # fmt: skip
    assert len(faults(broken)) == len(LIMITS) == 10
