"""Whether the machine with a real netem can be made here."""

import os

import pytest

from netem.vm.packages import missing

__all__ = ["needs_machine", "no_machine"]


def no_machine() -> str | None:
    """Why not. In CI it has to be: `.ci/run` fetches what it needs, and a skip would hide it."""
    if os.geteuid() != 0:
        return "not root, so no TAP"
    return None if os.environ.get("CI") else missing()


needs_machine = pytest.mark.skipif(no_machine() is not None, reason=f"{no_machine()}")
