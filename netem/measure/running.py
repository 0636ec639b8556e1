"""Run a measurement in a process of its own, so that nothing else in this one disturbs it."""

import json
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from netem.child import python_argv
from netem.errors import NetemError
from netem.kernel.processes import die_with_parent, parent_outlives_threads
from netem.measure.plan import Plan, Recorded, read_record, write_plan
from netem.measure.sockets import Address
from netem.measure.statistics import Direction, describe
from netem.profile.conditions import Way

__all__ = ["Measurement", "MeasurementFailedError", "measure_between"]

_CLOCK_STEP: Final = 0.001
_SPARE_TIME: Final = 10.0


class MeasurementFailedError(NetemError):
    """The measuring went wrong, so its figures would say nothing about the path."""


@dataclass(frozen=True, slots=True)
class Measurement:
    plan: Plan
    recorded: Recorded
    directions: dict[Way, Direction]

    @property
    def starved(self) -> bool:
        """Whether the machine was too busy to send in time: its delays are not the path's."""
        sent = sum(len(record.sent_at) for record in self.recorded.records.values())
        return self.recorded.late > sent / 100

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the figures may not be the path's."""
        told = []
        if self.starved:
            told.append("the machine was too busy to send in time: measure again")
        if self.recorded.refused:
            told.append(
                f"this host refused to send {self.recorded.refused} packets "
                f"({self.recorded.refusal}): they count as lost"
            )
        return tuple(told)


def measure_between(
    client: socket.socket,
    server: socket.socket,
    peers: tuple[Address, Address | None],
    plan: Plan,
    on_progress: Callable[[int, int], None] = lambda sent, total: None,
) -> Measurement:
    """Send as `plan` says between two sockets, from each to its peer.

    The server's peer may be None: then it answers to wherever the last packet came from, and
    begins with the first. `on_progress` is told how many packets of how many were sent.
    """
    argv = python_argv(
        "netem.measure.worker",
        f"{client.fileno()},{server.fileno()}",
        json.dumps(peers),
        write_plan(plan),
    )
    with subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(client.fileno(), server.fileno()),
        # Ctrl-C is for us to answer.
        start_new_session=True,
        # Two system calls and no lock: safe beside threads, too.
        preexec_fn=die_with_parent if parent_outlives_threads() else None,  # noqa: PLW1509
    ) as process:
        try:
            last = _last_line(process, on_progress)
            status: int | None = _status(process)
        except BaseException:
            process.kill()
            raise
    if status is None:
        raise MeasurementFailedError("the measuring process did not end: measure again")
    if status or not last.startswith("{"):
        raise MeasurementFailedError(f"the measuring process ended with status {status}")
    return _judged(plan, read_record(last))


def _status(process: subprocess.Popen[str]) -> int | None:
    """None: it had to be killed."""
    try:
        return process.wait(_SPARE_TIME)
    except subprocess.TimeoutExpired:
        process.kill()
        return None


def _last_line(process: subprocess.Popen[str], on_progress: Callable[[int, int], None]) -> str:
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        last = line
        if not line.startswith("{"):
            sent, total = line.split()
            on_progress(int(sent), int(total))
    return last


def _judged(plan: Plan, recorded: Recorded) -> Measurement:
    # Where damaged packets are expected, the kernel counts among these the ones it threw away.
    if recorded.overflowed and not plan.unchecked:
        raise MeasurementFailedError(
            f"{recorded.overflowed} packets came and were thrown away by the receiving host: they "
            "were damaged on the way, or came faster than they were read, and then lower the rate"
        )
    sent = sum(len(record.sent_at) for record in recorded.records.values())
    if recorded.refused and recorded.refused == sent:
        raise MeasurementFailedError(f"this host refuses to send: {recorded.refusal}")
    if recorded.clock_step > _CLOCK_STEP:
        raise MeasurementFailedError(
            f"the clock was set by {recorded.clock_step * 1e3:.0f} ms meanwhile: measure again"
        )
    directions = {
        way: describe(record.sent_at, record.arrivals) for way, record in recorded.records.items()
    }
    return Measurement(plan, recorded, directions)
