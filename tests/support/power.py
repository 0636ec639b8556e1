"""Whether network namespaces can be made here, and what to do with the tests that make them."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from netem.errors import ImpairmentError
from netem.kernel.interfaces import find_tool
from netem.kernel.power import lacking_power

__all__ = ["skip_without_power"]

TOOLS = ("curl", "ip", "nft", "ping", "setpriv", "tc", "unshare")
"""Of Debian's curl, iproute2, iputils-ping, nftables and util-linux."""

MODULES = (
    "tests/bench/test_link.py",
    "tests/client/test_race_blocked.py",
    "tests/bench/test_switch.py",
    "tests/doctor/test_doctor_beds.py",
    "tests/docs/test_lab_page.py",
    "tests/docs/test_loss_testing.py",
    "tests/lab/test_interrupted.py",
    "tests/lab/test_made_up.py",
    "tests/lab/test_matrix.py",
    "tests/lab/test_power.py",
    "tests/netem/measure/test_acceptance.py",
    "tests/netem/measure/test_command.py",
    "tests/netem/test_beds.py",
    "tests/netem/test_killed.py",
    "tests/netem/test_limits.py",
    "tests/netem/test_privileges.py",
    "tests/netem/test_run.py",
    "tests/netem/test_signals.py",
    "tests/netem/test_streams.py",
    "tests/netem/test_tc_bed.py",
    "tests/netem/vm/",
)


def skip_without_power(items: Iterable[pytest.Item]) -> None:
    """Skip what needs root, or rather its capabilities, and say so; in CI nothing is skipped."""
    reason = None if os.environ.get("CI") else _lacking()
    if reason is None:
        return
    mark = pytest.mark.skip(reason=f"makes networks, which takes root and tools: {reason}")
    for item in items:
        if item.nodeid.startswith(MODULES):
            item.add_marker(mark)


def _lacking() -> str | None:
    try:
        lacking = lacking_power()
    except ImpairmentError as error:
        return str(error)
    absent = [tool for tool in TOOLS if find_tool(tool) is None]
    return lacking or (f"without {', '.join(absent)}" if absent else None)
