"""What guards sessions on both doors: tokens, and how many may attach a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import parse_qsl

from starlette.requests import Request

from tenuto.auth import Claims, KeyRing, Reason, Scope, TokenError, authorise, issue
from tenuto.errors import ErrorCode, RequestError
from tenuto.policy import AttachRate
from tenuto.telemetry.events import ConnectionRefused, Event

__all__ = ["Authority", "Turnstile"]


class Authority:
    """Asks for tokens where there are keys; without any everybody may do everything.

    `clock` gives seconds since 1970, as tokens count.
    """

    def __init__(
        self, keys: KeyRing | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.refused = 0
        self._keys = keys
        self._clock = clock

    def check(self, request: Request, scope: Scope, session: str | None = None) -> None:
        """Raises `TokenError` unless the request's token allows this."""
        if self._keys is None:
            return
        try:
            authorise(self._keys, _token(request), scope, session, self._clock())
        except TokenError:
            self.refused += 1
            raise

    def check_from_afar(self, request: Request) -> None:
        """The same for what is told freely on this machine alone: it takes all of `control`."""
        if not _is_local(request):
            self.check(request, Scope.CONTROL)

    def for_session(self, session: str, lifetime: float) -> dict[str, str]:
        """A token to listen to and control one session, as `{"token": …}`; {} where none is
        wanted, or no key of ours can sign one.
        """
        signer = self._keys.signer if self._keys is not None else None
        if signer is None:
            return {}
        scopes = frozenset((Scope.LISTEN, Scope.CONTROL))
        return {"token": issue(signer, Claims(scopes, self._clock() + lifetime, session))}


class Turnstile:
    """Lets attaches in at a bounded rate; who comes too early is told when to come back.

    `clock` is monotonic. `on_event` hears of an episode of refusals once.
    """

    def __init__(
        self,
        rate: AttachRate,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._on_event = on_event

    @property
    def refused(self) -> int:
        return self._rate.refused

    def enter(self, request: Request) -> None:
        """Raises `RequestError` AT_CAPACITY with the caller's own `retry_after`."""
        refused = self._rate.admit(self._clock(), _address(request))
        if refused is None:
            return
        why = f"more than {self._rate.rate:g} listeners a second want in"
        if refused.first:
            self._on_event(ConnectionRefused("app", why))
        raise RequestError(
            ErrorCode.AT_CAPACITY,
            why,
            remedy=f"come back in {refused.wait:.3f} s, then it is your turn",
            detail={"retry_after": refused.wait},
        )


def _token(request: Request) -> str | None:
    fields = request.headers.getlist("authorization")
    query = request.scope["query_string"].decode("latin-1")
    found = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == "token"]
    if len(fields) + len(found) > 1:
        raise TokenError(
            Reason.TWICE, "more than one token", remedy="send one, in one place (RFC 6750)"
        )
    if not fields:
        return found[0] if found else None
    scheme, _, token = fields[0].strip().partition(" ")
    if scheme.lower() != "bearer":
        raise TokenError(
            Reason.MALFORMED,
            "the Authorization field is not of the scheme Bearer",
            remedy="send `Authorization: Bearer TOKEN`",
        )
    return token.strip()


def _address(request: Request) -> str:
    client = request.scope.get("client")
    return str(client[0]) if client is not None else ""


def _is_local(request: Request) -> bool:
    try:
        return ip_address(_address(request)).is_loopback
    except ValueError:
        return False
