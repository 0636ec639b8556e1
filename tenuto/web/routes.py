"""The routes: they decide what is asked for and hand out plans."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tenuto.auth import Scope
from tenuto.errors import ErrorCode, RequestError
from tenuto.host import SessionHost
from tenuto.policy import QuicShare, decide
from tenuto.session import Session, State
from tenuto.sources import (
    PARAMETERS,
    MediaFolder,
    StandardInput,
    find_kind,
    list_sources,
    open_source,
)
from tenuto.sources.base import Source
from tenuto.web.authority import Authority, Turnstile
from tenuto.web.guard import client_id
from tenuto.web.negotiate import EncodingFactory, negotiate
from tenuto.web.origin import check_origin
from tenuto.web.parameters import Parameters, read_parameters
from tenuto.web.plan import STREAM_HEADERS, Plan, PlanResponse
from tenuto.web.repeats import Repeats
from tenuto.web.wishes import Wishes, read_wishes

__all__ = ["Routes", "WebOptions"]

_INDEX = """Tenuto: live voice over HTTP/3, with TCP beside it.

GET|POST /v1/speak?text=Hello        create a session and stream it
POST     /v1/sessions                create a session
GET      /v1/sessions/ID/audio       stream it, from=SEQUENCE to resume
POST     /v1/sessions/ID/control     {"command": "pause"}, resume, flush, progress or close
GET      /v1/sources                 what can be played, with which parameters
GET      /v1/transport               is this client offered QUIC?
GET      /v1/address                 this client, as the server sees it
GET      /v1/certificate-hashes      SHA-256 for WebTransport's serverCertificateHashes
GET      /healthz /readyz /metrics
"""

_SOURCE_PARAMETERS = frozenset().union(*PARAMETERS.values()) | {"source"}

_SHARED = {"stdin": "stdin"}
"""Kinds of which all listeners have one session, and its name."""


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What the routes need to know of the server around them."""

    media: MediaFolder | None = None
    stdin: StandardInput | None = None
    test_sources: bool = False
    offer: Callable[[], tuple[QuicShare, int] | None] = lambda: None
    certificate_hashes: Callable[[], list[str]] = list
    names: Callable[[], Collection[str]] = tuple
    """The names in our certificate: only by them may sessions be started."""
    draining: Callable[[], bool] = lambda: False
    metrics: Callable[[], str] = lambda: ""
    health: Callable[[], dict[str, object]] = field(default=dict)
    authority: Authority = field(default_factory=Authority)
    turnstile: Turnstile | None = None
    """None lets everybody in at any rate."""


class Routes:
    """Handlers by name; `tenuto.web.app` gives them their paths."""

    def __init__(self, host: SessionHost, options: WebOptions) -> None:
        self._host = host
        self._options = options
        self._repeats = Repeats(host.now, host.find, host.tally)

    async def speak(self, request: Request) -> Response:
        self._check_origin(request)
        self._options.authority.check(request, Scope.CREATE)
        encoding = self._encoding(request)
        parameters = await read_parameters(request)
        wishes = read_wishes(parameters)
        if request.method == "HEAD":
            parameters.number("from")
            await self._source(parameters, wait=False)
            return _head(request)
        self._enter(request)
        session, again = await self._created(request, parameters)
        # Who asks again may have heard none of what the first answer has brought.
        start = session.start if again else None
        response = self._stream(session, encoding, wishes, start=start)
        response.headers.update(
            {f"tenuto-{name}": value for name, value in self._token(session).items()}
        )
        return response

    async def create(self, request: Request) -> Response:
        self._check_origin(request)
        self._options.authority.check(request, Scope.CREATE)
        parameters = await read_parameters(request)
        self._enter(request)
        session, _ = await self._created(request, parameters)
        audio = session.audio
        return JSONResponse(
            {
                "session": session.id,
                "epoch": session.epoch,
                "audio": f"/v1/sessions/{session.id}/audio",
                "rate": audio.rate,
                "channels": audio.channels,
                "frame_milliseconds": 20,
                "first": session.first,
                "expires_in": self._expires_in(session),
                **self._token(session),
            },
            201,
            {
                "tenuto-session": session.id,
                "location": f"/v1/sessions/{session.id}/audio",
                **_no_store(),
            },
        )

    async def audio(self, request: Request) -> Response:
        self._options.authority.check(request, Scope.LISTEN, request.path_params["id"])
        encoding = self._encoding(request)
        parameters = await read_parameters(request)
        wishes = read_wishes(parameters)
        start, epoch = parameters.number("from"), parameters.number("epoch")
        parameters.refuse_others(("lead", "listener", "chunk", "mode", "from", "epoch"))
        session = self._host.find(request.path_params["id"])
        if request.method == "HEAD":
            session.check_attach(
                wishes.listener,
                self._host.now(),
                start=start,
                epoch=epoch,
                lead=wishes.lead_in(session, encoding),
                live=wishes.live_in(session, encoding),
            )
            return _head(request)
        self._enter(request)
        return self._stream(session, encoding, wishes, start=start, epoch=epoch)

    async def control(self, request: Request) -> Response:
        self._check_origin(request)
        self._options.authority.check(request, Scope.CONTROL, request.path_params["id"])
        parameters = await read_parameters(request)
        command = parameters.values.pop("command", "")
        session = self._host.find(request.path_params["id"])
        commands = {
            "pause": self._host.pause,
            "resume": self._host.resume,
            "close": self._host.expire,
        }
        if command in commands:
            parameters.refuse_others(("command",))
            commands[command](session)
        elif command == "flush":
            session = await self._flushed(request, session, parameters)
        elif command == "progress":
            self._progress(session, parameters)
        else:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                f"command = {command[:50]!r}",
                remedy=f"say one of: {', '.join(commands)}, flush, progress",
            )
        return JSONResponse(self._facts(session))

    async def transport(self, request: Request) -> Response:
        offer = self._options.offer()
        if offer is None:
            return JSONResponse({"quic": False})
        decision = decide(offer[0], client_id(request.scope))
        return JSONResponse({"quic": decision.quic, "port": offer[1], "max_age": decision.max_age})

    async def address(self, request: Request) -> Response:
        """Behind a NAT a client learns in no other way which port it has outside."""
        scope = request.scope
        client = scope.get("client") or ("", 0)
        facts = {
            "address": client[0],
            "port": client[1],
            "transport": "quic" if scope["http_version"] == "3" else "tcp",
        }
        return JSONResponse(facts, headers=_no_store())

    async def sources(self, request: Request) -> Response:
        parameters = await read_parameters(request)
        language = parameters.values.pop("voices", None)
        parameters.refuse_others(("voices",))
        options = self._options
        there = {"file": options.media, "stdin": options.stdin}
        listed = await list_sources(
            missing={kind for kind, what in there.items() if what is None},
            stdin_live=options.stdin.live if options.stdin is not None else None,
            test_sources=options.test_sources,
            language=language,
        )
        return JSONResponse(listed, headers={"cache-control": "max-age=60"})

    async def certificate_hashes(self, request: Request) -> Response:
        hashes = self._options.certificate_hashes()
        return JSONResponse({"algorithm": "sha-256", "hashes": hashes}, headers=_no_store())

    async def healthz(self, request: Request) -> Response:
        facts = {"status": "ok", "sessions": len(self._host), "listeners": self._host.listeners}
        return JSONResponse({**facts, **self._options.health()}, headers=_no_store())

    async def readyz(self, request: Request) -> Response:
        draining = self._options.draining()
        status = {"status": "draining" if draining else "ready"}
        return JSONResponse(status, 503 if draining else 200, _no_store())

    async def metrics(self, request: Request) -> Response:
        self._options.authority.check_from_afar(request)
        text = self._options.metrics()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def index(self, request: Request) -> Response:
        return PlainTextResponse(_INDEX)

    # What the handlers share

    def _enter(self, request: Request) -> None:
        if self._options.turnstile is not None:
            self._options.turnstile.enter(request)

    def _token(self, session: Session) -> dict[str, str]:
        return self._options.authority.for_session(session.id, self._host.limits.max_age)

    async def _flushed(self, request: Request, session: Session, parameters: Parameters) -> Session:
        """Once, however often a key comes: the second flush would say the same from its start."""
        asked = {**parameters.values, "command": f"flush {session.id}"}

        async def flush() -> Session:
            await self._flush(session, parameters)
            return session

        return (await self._repeats.once(request, asked, flush))[0]

    async def _flush(self, session: Session, parameters: Parameters) -> None:
        if not parameters.values:
            return self._host.flush(session)
        if parameters.values.get("source") in _SHARED:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                "a session cannot go on with a source that others listen to",
                remedy="start a session of its own with POST /v1/sessions",
            )
        return self._host.flush(session, await self._source(parameters))

    def _progress(self, session: Session, parameters: Parameters) -> None:
        heard, listener = parameters.number("heard"), parameters.listener("")
        parameters.refuse_others(("command", "heard", "listener"))
        if heard is None:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                "progress without heard",
                remedy="say heard=SEQUENCE, the frame that is being played",
            )
        self._host.progress(session, listener, heard)

    def _facts(self, session: Session) -> dict[str, str | int | float]:
        """What whoever steers a session wants to know of it."""
        return {
            "session": session.id,
            "state": session.state.name.lower(),
            "epoch": session.epoch,
            "first": session.first,
            "end": session.end,
            "expires_in": self._expires_in(session),
        }

    def _expires_in(self, session: Session) -> float:
        if session.state is State.EXPIRED:
            return 0.0
        return round(session.deadline - self._host.now(), 3)

    def _check_origin(self, request: Request) -> None:
        headers = request.headers
        check_origin(headers.get("host", ""), headers.get("origin"), self._options.names())

    def _encoding(self, request: Request) -> EncodingFactory:
        factory = negotiate(request.headers.get("accept", "*/*"))
        old = request.scope["http_version"] == "1.0"
        if old and not getattr(factory, "shows_truncation", False):
            raise RequestError(
                ErrorCode.OLD_HTTP,
                "over HTTP/1.0 a cut audio stream would look complete",
                remedy="use HTTP/1.1, or accept application/vnd.tenuto.records",
            )
        return factory

    async def _created(self, request: Request, parameters: Parameters) -> tuple[Session, bool]:
        """A session for this request, and whether an earlier one with its key has made it."""
        if parameters.values.get("source") in _SHARED:
            return await self._session(parameters), False
        asked = dict(parameters.values)
        return await self._repeats.once(request, asked, lambda: self._session(parameters))

    async def _session(self, parameters: Parameters) -> Session:
        """A new session, or the one that goes on where there is but one source for all."""
        start = parameters.number("from")
        shared = _SHARED.get(parameters.values.get("source", ""))
        running = self._host.shared(shared) if shared is not None else None
        if running is not None:
            # Its frames have their numbers already, whatever this listener counted to.
            self._check_source(parameters)
            return running
        return self._host.open(await self._source(parameters), shared=shared, start=start)

    def _check_source(self, parameters: Parameters) -> None:
        if self._options.draining():
            raise RequestError(
                ErrorCode.DRAINING,
                "this server is about to stop",
                remedy="try again in a few seconds",
                detail={"retry_after": 2},
            )
        parameters.refuse_others(_SOURCE_PARAMETERS)
        find_kind(parameters.values, allow_test_sources=self._options.test_sources)

    async def _source(self, parameters: Parameters, *, wait: bool = True) -> Source:
        self._check_source(parameters)
        return await open_source(
            parameters.values,
            media=self._options.media,
            stdin=self._options.stdin,
            allow_test_sources=self._options.test_sources,
            wait=wait,
        )

    def _stream(
        self,
        session: Session,
        encoding: EncodingFactory,
        wishes: Wishes,
        *,
        start: int | None,
        epoch: int | None = None,
    ) -> Response:
        cursor = self._host.attach(
            session,
            wishes.listener,
            start=start,
            epoch=epoch,
            lead=wishes.lead_in(session, encoding),
            live=wishes.live_in(session, encoding),
        )
        encoded = encoding(session, cursor)
        return PlanResponse(Plan(self._host, session, cursor, encoded, wishes.chunk))


def _head(request: Request) -> Response:
    """The headers a GET would begin with; nothing is started or attached."""
    accept = negotiate(request.headers.get("accept", "*/*"))
    media_type = getattr(accept, "media_type", "audio/L16")
    response = Response(media_type=None, headers={"content-type": media_type, **STREAM_HEADERS})
    del response.headers["content-length"]
    return response


def _no_store() -> dict[str, str]:
    return {"cache-control": "no-store"}
