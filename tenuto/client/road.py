"""What a stream asks of its leg beside the audio, where that kind of leg can do it."""

from __future__ import annotations

from tenuto.client.dialing import AnyLeg

__all__ = ["ping", "rebind", "rest"]


def ping(leg: AnyLeg) -> None:
    """Show the path that somebody is there."""
    call = getattr(leg, "ping", None)
    if call is not None:
        call()


def rest(leg: AnyLeg, *, quiet: bool) -> None:
    """No heartbeats from now on, or again and one at once."""
    call = getattr(leg, "rest", None)
    if call is not None:
        call(quiet)


def rebind(leg: AnyLeg) -> bool:
    """Go on from a new port without a new connection; False where that cannot be."""
    call = getattr(leg, "rebind", None)
    return call is not None and bool(call())
