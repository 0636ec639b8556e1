"""The ASGI extension by which a route says what to stream and leaves the how to the door.

A door that knows it puts `PLAN` into `scope["extensions"]` and accepts one message of that
type after `http.response.start`: `{"type": PLAN, "plan": Plan}`. Its `send` returns when all
is sent, and raises or is cancelled when the listener is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenuto.errors import OperatorError
from tenuto.host import SessionHost
from tenuto.policy import WORTH_TELLING
from tenuto.session import Cursor, Session
from tenuto.web.encodings import Encoding

__all__ = ["PLAN", "STREAM_HEADERS", "Plan", "PlanResponse"]

PLAN = "tenuto.plan"

STREAM_HEADERS = {
    "cache-control": "no-cache, no-store, no-transform",
    "x-accel-buffering": "no",
}
"""What keeps proxies from holding a stream back or changing it."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Send this cursor's frames in this encoding."""

    host: SessionHost
    session: Session
    cursor: Cursor
    encoding: Encoding
    chunk: int | None = None
    """Frames that the listener wants to travel together; None leaves it to the door."""


class PlanResponse(Response):
    """A response whose body the door reads from the session itself."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers(
            {
                "content-type": plan.encoding.media_type,
                "tenuto-session": plan.session.id,
                "vary": "accept",
                **STREAM_HEADERS,
            }
        )
        if plan.host.return_within >= WORTH_TELLING:
            self.headers["tenuto-return-within"] = f"{plan.host.return_within:.1f}"
        # Its length is not known in advance.
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plan = self.plan
        try:
            if PLAN not in scope.get("extensions", {}):
                raise OperatorError(
                    f"this ASGI server does not know the extension {PLAN}",
                    remedy="serve the app with `tenuto serve`",
                )
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": PLAN, "plan": plan})
        finally:
            plan.host.detach(plan.session, plan.cursor)
