"""A leg that is opened beside the present one, which goes on meanwhile."""

from __future__ import annotations

import asyncio

from tenuto.client.asking import Place
from tenuto.client.errors import ConnectError, Failure, FailureKind, LegError
from tenuto.client.exchange import TransportChoice
from tenuto.client.handover import first_of
from tenuto.client.resuming import Resumer, Way

__all__ = ["Beside", "Needless"]

_MOVE_WITHIN = 1.0
"""Seconds for a leg that is opened beside one that was lost meanwhile; then it is retried."""


class Needless(ConnectError):  # noqa: N818 - what happened
    """It was given up, which says nothing of where it went."""


class Beside:
    """Opens one at a time. A leg that nobody took over is let go of, however that came about."""

    def __init__(self, resumer: Resumer, deadline: float) -> None:
        self._resumer = resumer
        self._deadline = deadline
        self._over: asyncio.Future[None] | None = None
        self._opening: asyncio.Task[tuple[Way, bytes]] | None = None
        self._given_up = ""

    @property
    def busy(self) -> bool:
        return self._over is not None

    async def turn(self) -> None:
        """Wait until none is being opened."""
        while self._over is not None:
            await asyncio.wait([self._over])

    async def open(
        self, transport: TransportChoice, place: Place, *, paused: bool
    ) -> tuple[Way, bytes]:
        """A leg that delivers, and what it has brought, its first frame included.

        One at a time: await `turn` right before.
        The caller takes it over, or aborts it, before anything else happens. Raises
        `ConnectError`, `RequestError` and `RemoteProtocolError`.
        """
        assert self._over is None
        over = self._over = asyncio.get_running_loop().create_future()
        opening = asyncio.ensure_future(self._open(transport, place, paused=paused))
        self._opening = opening
        taken = False
        try:
            found = await opening
            taken = True
        except asyncio.CancelledError:
            if not self._given_up:
                raise
            raise _stays(transport, FailureKind.TIMEOUT, self._given_up, Needless) from None
        except LegError as failed:
            raise _stays(transport, failed.kind, failed.reason) from None
        else:
            return found
        finally:
            if not taken:
                _let_go(opening)
            self._over = self._opening = None
            self._given_up = ""
            over.set_result(None)

    def give_up(self, reason: str) -> None:
        """The one that is being opened is of no use any more; `open` raises."""
        if self._opening is not None and not self._opening.done():
            self._given_up = reason
            self._opening.cancel()

    async def outlast(self) -> None:
        """The present leg is lost, and the one that was to follow it may never come."""
        if self._over is None:
            return
        over = self._over
        done, _ = await asyncio.wait([over], timeout=_MOVE_WITHIN)
        if not done:
            self.give_up("its own leg was lost meanwhile")
            await asyncio.wait([over])

    async def _open(
        self, transport: TransportChoice, place: Place, *, paused: bool
    ) -> tuple[Way, bytes]:
        # Another session, or a later frame, would cost what the present leg still brings.
        way = await self._resumer.attempt(place, transport, exactly=True)
        leg = way.dialed.leg
        try:
            return way, await first_of(leg, paused=paused, deadline=self._deadline)
        except BaseException:
            leg.abort()
            raise


def _stays(
    transport: TransportChoice,
    kind: FailureKind,
    reason: str,
    error: type[ConnectError] = ConnectError,
) -> ConnectError:
    return error(
        f"the stream stays where it is: {reason}",
        remedy="move it again later",
        failures=(Failure("tcp" if transport == "tcp" else "quic", kind, reason),),
    )


def _let_go(opening: asyncio.Task[tuple[Way, bytes]]) -> None:
    opening.cancel()
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        opening.result()[0].dialed.leg.abort()
