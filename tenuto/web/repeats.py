"""Requests that are made again: what the first one did is not done twice.

A client that races its request over two transports, or that never saw the answer to it, says
with `Idempotency-Key` that it wants one session and not two, or one flush
(draft-ietf-httpapi-idempotency-key-header-07).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request

from tenuto.errors import ErrorCode, RequestError
from tenuto.host import Tally
from tenuto.session import Session

__all__ = ["KEY_KEPT", "MAX_KEYS", "MAX_KEY_SIZE", "Repeats"]

KEY_KEPT = 60.0
"""Seconds for which a key is known, from its first request on."""

MAX_KEYS = 10_000
"""Keys that are known at once; the oldest makes room."""

MAX_KEY_SIZE = 128

_KEY = re.compile(r'(")?([\x21\x23-\x7e]+)(?(1)")')


@dataclass(slots=True)
class _Made:
    """What the first request with a key led to."""

    asked: bytes
    at: float
    session: asyncio.Future[str]
    """Its id: a session that is over is not to be held by a key."""


class Repeats:
    """Sessions by the keys of the requests that created or flushed them, for a minute.

    Keys of one token say nothing to the bearer of another. `now` is monotonic, `find` gives a
    session by its id.
    """

    def __init__(
        self, now: Callable[[], float], find: Callable[[str], Session], tally: Tally
    ) -> None:
        self._now = now
        self._find = find
        self._tally = tally
        self._made: dict[bytes, _Made] = {}

    async def once(
        self,
        request: Request,
        parameters: Mapping[str, str],
        make: Callable[[], Awaitable[Session]],
    ) -> tuple[Session, bool]:
        """The session that `make` gives, and whether it did for an earlier request.

        Raises what `make` does, and `RequestError` for a key that is none or went with other
        parameters before, and for a session that is over.
        """
        key = _key(request)
        if key is None:
            return await make(), False
        asked = hashlib.sha256(json.dumps(sorted(parameters.items())).encode()).digest()
        self._forget()
        while (made := self._made.get(key)) is not None:
            if made.asked != asked:
                raise RequestError(
                    ErrorCode.KEY_REUSED,
                    "this Idempotency-Key went with another request before",
                    remedy="draw a new key for each session and each flush",
                )
            # Should the first request be cut off or refused, this one is the first.
            await asyncio.wait([made.session])
            if not made.session.cancelled():
                session = self._find(made.session.result())
                self._tally.requests_repeated += 1
                return session, True
        return await self._make(key, asked, make), False

    async def _make(
        self, key: bytes, asked: bytes, make: Callable[[], Awaitable[Session]]
    ) -> Session:
        if len(self._made) >= MAX_KEYS:
            del self._made[next(iter(self._made))]
            self._tally.keys_forgotten += 1
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        mine = self._made[key] = _Made(asked, self._now(), future)
        try:
            session = await make()
        except BaseException:
            if self._made.get(key) is mine:
                del self._made[key]
            future.cancel()
            raise
        future.set_result(session.id)
        return session

    def _forget(self) -> None:
        """Those whose time is over; they lie in the order of their coming."""
        while self._made:
            key, oldest = next(iter(self._made.items()))
            if self._now() - oldest.at < KEY_KEPT:
                return
            del self._made[key]


def _key(request: Request) -> bytes | None:
    """A digest of who asks and the key; None where there is no key."""
    fields = request.headers.getlist("idempotency-key")
    if not fields:
        return None
    found = _KEY.fullmatch(fields[0].strip())
    if len(fields) > 1 or found is None or len(found[2]) > MAX_KEY_SIZE:
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            f"Idempotency-Key = {fields[0][:50]!r}",
            remedy=f"send one key of 1 to {MAX_KEY_SIZE} visible ASCII characters",
        )
    bearer = request.headers.get("authorization", "") + "\n" + request.query_params.get("token", "")
    # A digest keeps no token in memory, and every key is of one size.
    return hashlib.sha256(f"{bearer}\n{found[2]}".encode()).digest()
