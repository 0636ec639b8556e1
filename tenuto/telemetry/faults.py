"""An exception nobody expected, as an event: what and where, never a traceback to a user."""

from __future__ import annotations

from tenuto.redaction import redact
from tenuto.telemetry.events import PeerFaulted

__all__ = ["describe_fault"]


def describe_fault(door: str, fault: BaseException) -> PeerFaulted:
    """Names the exception and the innermost line it came from."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "?"
    if trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
    return PeerFaulted(door, redact(repr(fault))[:200], place)
