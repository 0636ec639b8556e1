"""The ASGI app: paths, methods, error handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tenuto.errors import TenutoError
from tenuto.host import SessionHost
from tenuto.telemetry.events import Event
from tenuto.web.guard import Guard
from tenuto.web.problems import failed, refused, unrouted
from tenuto.web.routes import Routes, WebOptions

__all__ = ["WebOptions", "create_app"]


def create_app(
    host: SessionHost,
    options: WebOptions,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
) -> ASGIApp:
    """The one app that every door serves."""
    routes = Routes(host, options)
    table = [
        ("/", routes.index, ("GET",)),
        ("/v1/speak", routes.speak, ("GET", "POST")),
        ("/v1/sessions", routes.create, ("POST",)),
        ("/v1/sessions/{id}/audio", routes.audio, ("GET",)),
        ("/v1/sessions/{id}/control", routes.control, ("POST",)),
        ("/v1/sources", routes.sources, ("GET",)),
        ("/v1/transport", routes.transport, ("GET",)),
        ("/v1/address", routes.address, ("GET",)),
        ("/v1/certificate-hashes", routes.certificate_hashes, ("GET",)),
        ("/healthz", routes.healthz, ("GET",)),
        ("/readyz", routes.readyz, ("GET",)),
        ("/metrics", routes.metrics, ("GET",)),
    ]
    app = Starlette(
        routes=[_route(path, handler, methods) for path, handler, methods in table],
        exception_handlers={TenutoError: refused, HTTPException: unrouted, Exception: failed},
    )
    # "/v1/speak/" is a mistake to be named, not a redirect to follow.
    app.router.redirect_slashes = False
    return Guard(app, offer=options.offer, on_event=on_event)


def _route(
    path: str,
    handler: Callable[[Request], Awaitable[Response]],
    methods: tuple[str, ...],
) -> Route:
    allowed = sorted({*methods, "OPTIONS", *(("HEAD",) if "GET" in methods else ())})

    async def answer(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"allow": ", ".join(allowed)})
        return await handler(request)

    return Route(path, answer, methods=list(allowed))
