"""What a stream asks for: first, when it goes on, and when it must be made anew."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from tenuto import __version__
from tenuto.client.exchange import Request
from tenuto.client.target import Target, Value
from tenuto.errors import ErrorCode, RequestError
from tenuto.session import DEFAULT_LEAD
from tenuto.wire import MEDIA_TYPE, VERSION

__all__ = ["Anew", "Asking", "Place", "checked"]

_SESSION = re.compile(r"/v1/sessions/([^/]+)/audio$")

_WISHES = ("lead", "listener", "chunk")
"""How a listener wants its audio, whatever the audio is."""

_ENTRY = ("from", "epoch", "skip", "offset", "mode", "token")
"""Where it begins, and who it is."""

_NEVER_AGAIN = frozenset({"stdin", "upstream"})
"""Sources that there are but once: nobody can have their beginning left out."""

_UNSKIPPED = frozenset({"clock"})
"""Live ones: who comes anew hears the present."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream goes on."""

    session: str | None
    epoch: int | None
    """None before the first FORMAT: then nobody knows where the stream begins."""
    sequence: int
    text_offset: int | None = None
    """The last one that is known to have begun to sound."""


@dataclass(frozen=True, slots=True)
class Anew:
    """How a new session leaves out what was had of an older one."""

    request: Request
    skip: int | None
    text_offset: int | None


class Asking:
    """The requests of one stream. `listener` is who asks in all of them.

    `token` opens sessions; a session's own, where the server gives one, is used within it.
    """

    def __init__(
        self,
        target: Target,
        method: Literal["GET", "POST"],
        params: Mapping[str, Value] | None,
        *,
        token: str | None,
        mode: Literal["gapless", "live"] | None = None,
    ) -> None:
        self.target = target
        self._method = method
        self._params = checked(dict(params or {}))
        self.listener_is_ours = "listener" not in (*target.names, *self._params)
        """Made up here and known to nobody else."""
        if self.listener_is_ours:
            # Ours for each stream, so that a newer leg of this listener can supersede this one.
            self._params["listener"] = secrets.token_urlsafe(9)
        if mode is not None:
            self._params.setdefault("mode", mode)
        given: dict[str, Value] = {**target.params, **self._params}
        wanted = given.get("mode") if mode is None else mode
        self._mode: dict[str, Value] = {} if wanted is None else {"mode": wanted}
        self._token = token or _text(given.get("token"))
        self._session_token: str | None = None
        self._wishes = {name: given[name] for name in _WISHES if name in given}
        entry = [name for name in ("from", "epoch") if name in given]
        self._entry: dict[str, Value] = {name: given[name] for name in entry}
        self._source: dict[str, Value] | None = None
        if target.path.endswith("/v1/speak"):
            self._source = _source(given)
        self._skipped = _whole(given.get("skip"))
        self._offset = _whole(given.get("offset"))
        self._key = secrets.token_urlsafe(12)
        self._restarts = 0
        self._origin: int | None = None
        """The number of the first frame behind what was skipped."""

    @property
    def session(self) -> str | None:
        """Whose audio is asked for, where it is a session's by name."""
        found = _SESSION.search(self.target.path)
        return unquote(found[1]) if found else None

    @property
    def listener(self) -> str:
        return str(self._wishes["listener"])

    @property
    def lead(self) -> float | None:
        """Seconds ahead of real time that the server may send; None for `max`."""
        wish = str(self._wishes.get("lead", DEFAULT_LEAD))
        try:
            return float(wish)
        except ValueError:
            return None  # `max`, or what the server will refuse

    def first(self) -> Request:
        """What the caller asks for."""
        key = None if self.session is not None else self._key
        return self._request(self._method, self.target, self._params, self._token, key)

    def resume(self, place: Place) -> Request:
        """The same session, from a frame on."""
        assert place.session is not None
        target = self.target.at(f"/v1/sessions/{quote(place.session, safe='')}/audio")
        params = {**self._wishes, **self._mode}
        if place.epoch is not None:
            params |= {"epoch": place.epoch, "from": place.sequence}
        elif self.session is not None:
            params |= self._entry
        return self._request("GET", target, params, self._session_token or self._token)

    def anew(self, place: Place) -> Anew | None:
        """A new session for what is still missing; None where it cannot be had again."""
        if self._source is None or self._source.get("source") in _NEVER_AGAIN:
            return None
        sequence = place.sequence if place.epoch is not None else _whole(self._entry.get("from"))
        params: dict[str, Value] = {**self._source, **self._wishes, "from": sequence}
        skip = text_offset = None
        if "text" in self._source:
            text_offset = self._offset if place.text_offset is None else place.text_offset
            params["offset"] = text_offset
        elif self._source.get("source") not in _UNSKIPPED:
            origin = sequence if self._origin is None else self._origin
            skip = self._skipped + max(0, sequence - origin)
            params["skip"] = skip
        target = self.target.at("/v1/speak")
        # The next attempt at the same place asks for the same session.
        key = f"{self._key}.{self._restarts}.{sequence}"
        request = self._request(self._method, target, params, self._token, key)
        return Anew(request, skip, text_offset)

    def control(self, session: str, fields: Mapping[str, Value], key: str | None = None) -> Request:
        target = self.target.at(f"/v1/sessions/{quote(session, safe='')}/control")
        if key is not None:
            key = f"{key}.{self._restarts}"  # Done to this session, it is not to another.
        return self._request("POST", target, fields, self._session_token or self._token, key)

    # What is learnt on the way

    def answered(self, headers: Mapping[str, str]) -> None:
        """A session's token is for that session alone."""
        self._session_token = headers.get("tenuto-token", self._session_token)

    def began(self, sequence: int) -> None:
        """The session has this first frame."""
        if self._origin is None:
            self._origin = sequence

    def restarted(self, anew: Anew, sequence: int) -> None:
        """The new session is there: its token and its beginning are what counts."""
        self._session_token = None
        self._restarts += 1
        self._origin = sequence
        self._skipped = anew.skip or 0
        self._offset = anew.text_offset or 0

    def replaced(self, params: Mapping[str, Value] | None, base: int | None) -> None:
        """From frame `base` on the session says something else; None: nobody here knows what.

        Of a base that is not known yet nothing has come.
        """
        self._source = None if params is None else _source(params)
        self._origin, self._skipped, self._offset = base, 0, 0

    def elsewhere(self, target: Target) -> None:
        """The session is at another server."""
        self.target = Target(target.host, target.port, self.target.path, self.target.query)

    def _request(
        self,
        method: str,
        target: Target,
        params: Mapping[str, Value],
        token: str | None,
        key: str | None = None,
    ) -> Request:
        headers = [
            ("accept", f"{MEDIA_TYPE}; v={VERSION}"),
            ("user-agent", f"tenuto/{__version__}"),
        ]
        if token is not None:
            headers.append(("authorization", f"Bearer {token}"))
        if key is not None:
            headers.append(("idempotency-key", key))
        if method == "GET":
            path = target.request_path(params)
            return Request(method, target.authority, path, tuple(headers))
        body = json.dumps(params, ensure_ascii=False).encode()
        headers.append(("content-type", "application/json"))
        return Request(method, target.authority, target.request_path(), tuple(headers), body)


def checked(params: dict[str, Value]) -> dict[str, Value]:
    """The same; a `RequestError` for what is no text."""
    for name, value in params.items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            raise RequestError(
                ErrorCode.BAD_TEXT,
                f"{name} holds a lone surrogate, which is no text",
                remedy="check the encoding of what was typed or read; it must be UTF-8",
            ) from None
    return params


def _source(params: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in params.items() if name not in (*_WISHES, *_ENTRY)}


def _text(value: Value | None) -> str | None:
    return None if value is None else str(value)


def _whole(value: Value | None) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
