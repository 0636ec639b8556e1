"""Which encoding a listener gets (RFC 9110 section 12.5.1)."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.errors import ErrorCode, RequestError
from tenuto.session import Cursor, Session
from tenuto.web.encodings import L16, Encoding, Records, Wav
from tenuto.wire import MEDIA_TYPE, VERSION

__all__ = ["OFFERED", "negotiate"]

EncodingFactory = Callable[[Session, Cursor], Encoding]

# In order of preference where a client likes several equally: a plain player that asks for
# anything gets what it can play.
OFFERED: dict[str, EncodingFactory] = {
    "audio/wav": Wav,
    MEDIA_TYPE: Records,
    "audio/l16": L16,
}

_ALIASES = {"audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav"}


def negotiate(accept: str) -> EncodingFactory:
    """The best offered encoding; `RequestError` NOT_ACCEPTABLE names what there is."""
    ranges = [_parse(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    best: tuple[float, EncodingFactory] | None = None
    for name, factory in OFFERED.items():
        quality = _quality(name, ranges)
        if quality > 0 and (best is None or quality > best[0]):
            best = (quality, factory)
    if best is None:
        raise RequestError(
            ErrorCode.NOT_ACCEPTABLE,
            f"nothing here is {accept[:100]!r}",
            remedy=f"accept one of: {', '.join(OFFERED)}",
        )
    return best[1]


def _quality(name: str, ranges: list[tuple[str, float]]) -> float:
    """The quality given by the most specific range that covers `name`."""
    for pattern in (name, name.split("/")[0] + "/*", "*/*"):
        for type, quality in ranges:
            if type == pattern:
                return quality
    return 0.0


def _parse(part: str) -> tuple[str, float]:
    type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
        elif key == "v" and type == MEDIA_TYPE and value != str(VERSION):
            raise RequestError(
                ErrorCode.NOT_ACCEPTABLE,
                f"records of version {value[:20]}",
                remedy=f"this server speaks v={VERSION}",
            )
    return _ALIASES.get(type, type), quality
