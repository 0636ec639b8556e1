"""What surrounds every route: HTTP versions, Alt-Svc, and the last catch."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenuto.errors import TenutoError
from tenuto.policy import QuicShare, alt_svc, decide
from tenuto.telemetry.events import Event
from tenuto.telemetry.faults import describe_fault
from tenuto.web.problems import FAILED, problem

__all__ = ["Guard", "client_id"]


class Guard:
    """Pure ASGI middleware around the app.

    `offer` gives the share of clients that are offered QUIC and the UDP port, or None while
    no QUIC door is open. Nothing an app raises reaches a peer or another request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        offer: Callable[[], tuple[QuicShare, int] | None],
        on_event: Callable[[Event], None],
    ) -> None:
        self._app = app
        self._offer = offer
        self._on_event = on_event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False
        offered = self._alt_svc(scope)

        async def send_with_offer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                if offered:
                    message["headers"] = [*message.get("headers", []), (b"alt-svc", offered)]
            await send(message)

        if scope["method"] == "OPTIONS" and scope["path"] == "*":
            # RFC 9110 section 9.3.7: the server as a whole.
            return await Response(status_code=204)(scope, receive, send_with_offer)
        try:
            await self._app(scope, receive, send_with_offer)
        except Exception as fault:  # noqa: BLE001  # a guard
            error = self._explain(scope, fault)
            if begun:
                # Too late for a status; the door ends the stream so that it looks cut.
                raise error from None
            await problem(error)(scope, receive, send_with_offer)
        return None

    def _alt_svc(self, scope: Scope) -> bytes:
        offer = self._offer()
        if offer is None:
            return b""
        share, port = offer
        return alt_svc(decide(share, client_id(scope)), port).encode()

    def _explain(self, scope: Scope, fault: Exception) -> TenutoError:
        if isinstance(fault, TenutoError):
            return fault
        self._on_event(describe_fault("app", fault))
        return FAILED


def client_id(scope: Scope) -> str:
    """The stable id a client gave itself in `Tenuto-Client`; empty where it gave none."""
    return Request(scope).headers.get("tenuto-client", "")[:256]
