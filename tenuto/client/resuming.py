"""The one owner of a stream's retries: from a lost leg to one that goes on, or to the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from tenuto.client.answers import (
    Loss,
    Step,
    after_failure,
    after_refusal,
    retry_after,
    strikes_many,
)
from tenuto.client.asking import Anew, Asking, Place
from tenuto.client.dialing import Dialed, Dialer
from tenuto.client.errors import ConnectError
from tenuto.client.events import EventLog, Retrying
from tenuto.client.exchange import Transport, TransportChoice
from tenuto.client.hurry import Hurry
from tenuto.client.target import Target
from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.policy import Retries, RetryPolicy

__all__ = ["GaveUp", "Resumer", "Way"]

_DETOURS = 4
"""Answers in turn that send us on at once; then there is a wait."""


class GaveUp(Exception):  # noqa: N818 - what happened
    """The stream will not go on, for this reason."""

    def __init__(self, reason: str, code: ErrorCode | None, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Way:
    """A leg that goes on; `anew` where it is a new session's, `dialed_at` on the loop's clock."""

    dialed: Dialed
    anew: Anew | None
    dialed_at: float


class Resumer:
    """Waits and dials. A cancelled call may be made again: the wait goes on where it was."""

    def __init__(
        self,
        dialer: Dialer,
        asking: Asking,
        transport: TransportChoice,
        policy: RetryPolicy,
        log: EventLog,
        draw: Callable[[], float],
    ) -> None:
        self.wish: Transport | None = None
        """What the next attempt is made over, once."""
        self.crowd = 0.0
        """Seconds in which all that the server had can come back to it."""
        self.transport: TransportChoice = transport
        """What the caller allows."""
        self._dialer = dialer
        self._asking = asking
        self._retries = Retries(policy)
        self._log = log
        self._draw = draw
        self._loop = asyncio.get_running_loop()
        self._last = Loss("")
        self._due: float | None = None
        """When the attempt that was announced is to begin."""
        self._attempts = 0
        """Of this interruption."""
        self.hurry = Hurry()

    def interrupted(self, loss: Loss) -> None:
        """A leg is lost, or the attempt that seemed to have worked."""
        self._retries.interrupted(self._loop.time())
        self._last = loss
        self.hurry.asked = False

    def flowing(self) -> int:
        """Audio comes again; after how many attempts."""
        self._retries.flowing(self._loop.time())
        attempts, self._attempts = self._attempts, 0
        return attempts

    async def go_on(self, place: Place, unheard: float) -> Way:
        """A leg whose answer is audio from `place` on.

        `unheard` is how many seconds nobody would notice. Raises `GaveUp`.
        """
        while True:
            await self._wait(unheard)
            self._attempts += 1
            transport, self.wish = self.wish or self.transport, None
            try:
                while (way := await self.once(place, transport)) is None:
                    self.hurry.asked = False
                return way
            except ConnectError as error:
                many = any(strikes_many(failure.kind) for failure in error.failures)
                self._last = replace(self._last, reason=error.message, retry_after=0.0, many=many)
                if after_failure(error) is Step.OVER:
                    raise _gave_up(error) from None
            except RequestError as refusal:
                if after_refusal(refusal, source_known=False) is not Step.AGAIN:
                    raise _gave_up(refusal) from None
                wait = retry_after(refusal.detail)
                self._last = Loss(refusal.message, refusal.code, refusal.remedy, wait)

    async def once(self, place: Place, transport: TransportChoice) -> Way | None:
        """An `attempt`; None where the network has changed meanwhile."""
        return await self.hurry.unless(self.attempt(place, transport), _discard)

    async def attempt(
        self, place: Place, transport: TransportChoice, *, exactly: bool = False
    ) -> Way:
        """Once, wherever the answers lead; raises `ConnectError` and `RequestError`.

        `exactly`: from this place on and in this session, or not at all.
        """
        asking, anew = self._asking, None
        for _ in range(_DETOURS):
            if place.session is None or anew is not None:
                anew = asking.anew(place)
            request = asking.resume(place) if anew is None else anew.request
            began = self._loop.time()
            try:
                dialed = await self._dialer.dial(asking.target, request, transport)
            except RequestError as refusal:
                if exactly and refusal.code is not ErrorCode.WRONG_NODE:
                    raise
                place, wanted = self._detour(place, refusal, anew)
                if exactly and wanted:
                    raise
                if wanted:
                    anew = asking.anew(place)
                continue
            return Way(dialed, anew, began)
        raise RequestError(
            ErrorCode.AT_CAPACITY,
            f"{_DETOURS} answers in turn led nowhere",
            remedy="ask whoever runs the servers",
        )

    def _detour(self, place: Place, refusal: RequestError, anew: Anew | None) -> tuple[Place, bool]:
        """Where to go on instead, and whether with a new session; else raises `refusal`."""
        known = anew is None and self._asking.anew(place) is not None
        match after_refusal(refusal, source_known=known):
            case Step.ANEW:
                return place, True
            case Step.ONWARD if anew is None:
                return _onward(place, refusal), False
            case Step.ELSEWHERE:
                try:
                    self._asking.elsewhere(Target.parse(str(refusal.detail["url"])))
                except RequestError:
                    raise refusal from None
                self._dialer.elsewhere()
                return place, False
            case _:
                raise refusal

    async def _wait(self, unheard: float) -> None:
        now = self._loop.time()
        if self._due is None:
            last = self._last
            wait = self._retries.next_wait(
                now,
                self._draw(),
                retry_after=last.retry_after,
                many=last.many,
                unheard=unheard,
                crowd=self.crowd,
            )
            if wait is None:
                spent = self._retries.policy.patience
                reason = f"{last.reason}; nothing went on within {spent:g} s"
                raise GaveUp(reason, last.told, last.remedy)
            self._due = now + wait
            self._log.add(Retrying(self._attempts + 1, wait))
        while (rest := self._due - self._loop.time()) > 0:
            if self.hurry.asked and not self._last.retry_after:
                break
            self.hurry.asked = False
            await self.hurry.unless(asyncio.sleep(rest))
        self.hurry.asked = False
        self._due = None


def _discard(way: Way) -> None:
    way.dialed.leg.abort()


def _onward(place: Place, refusal: RequestError) -> Place:
    """From the first frame that there is; raises `refusal` where it names none."""
    numbers = {name: refusal.detail.get(name) for name in ("first", "base", "epoch")}
    epoch, first = numbers["epoch"], numbers["first"]
    if not isinstance(first, int):
        raise refusal
    base = numbers["base"] if isinstance(numbers["base"], int) else 0
    return replace(
        place,
        epoch=epoch if isinstance(epoch, int) else place.epoch,
        sequence=max(first, base),
        text_offset=None,
    )


def _gave_up(error: TenutoError) -> GaveUp:
    told = error.code if isinstance(error, RequestError) else None
    return GaveUp(error.message, told, error.remedy)
