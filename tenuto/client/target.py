"""Where a stream is: a URL taken apart, and the addresses behind its name."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode, urlsplit

from tenuto.client.errors import FailureKind, LegError
from tenuto.errors import ErrorCode, RequestError
from tenuto.redaction import redact

__all__ = ["DEFAULT_PORT", "Address", "Target", "Value", "interleave", "resolve"]

DEFAULT_PORT = 443

Value = str | int | float
"""What a parameter of a request may be."""

SockAddr = tuple[str, int] | tuple[str, int, int, int]

# What RFC 3986 lets stand in a path or query, and the escapes that are there already.
_URL_SAFE = "/%:=&?~+!$,;'@()*"

# Underscores are in names that are looked up, if in none of a host.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,254}")

_SHAPE = "write it like https://localhost:4433/v1/speak?text=Hello"


@dataclass(frozen=True, slots=True)
class Address:
    """A numeric address as `getaddrinfo` gives it, good for UDP and for TCP."""

    family: int
    sockaddr: SockAddr

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed `https` URL; `host` is without brackets, `path` and `query` are escaped."""

    host: str
    port: int
    path: str
    query: str = field(default="", repr=False)  # a token may be in it

    @classmethod
    def parse(cls, url: str) -> Target:
        """Raises `RequestError` for what is no URL of an HTTPS server."""
        _check_text(url)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise _bad_url(url, str(error)) from None
        if parts.scheme != "https" or not url.lower().startswith("https://"):
            reason = f"it begins with {parts.scheme}:" if "://" in url else "it has no https://"
            raise _bad_url(url, reason)
        if parts.username is not None or parts.password is not None:
            raise _bad_url(url, "it holds a user name or password", "leave them out")
        if not parts.hostname:
            raise _bad_url(url, "it names no host")
        if port == 0:
            raise _bad_url(url, "port 0 cannot be connected to")
        return cls(
            host=_host(parts.hostname, url),
            port=port or DEFAULT_PORT,
            path=quote(parts.path, safe=_URL_SAFE) or "/",
            query=quote(parts.query, safe=_URL_SAFE),
        )

    @property
    def authority(self) -> str:
        """Host and port as `Host` and `:authority` carry them (RFC 9110 section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORT else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"https://{self.authority}"

    @property
    def names(self) -> frozenset[str]:
        """The parameters that the URL itself gives."""
        return frozenset(map(_name, self.query.split("&"))) - {""}

    @property
    def params(self) -> dict[str, str]:
        """What the URL itself gives; of equal names the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def at(self, path: str) -> Target:
        """Another path of the same server, below the same prefix."""
        prefix, versioned, _ = self.path.partition("/v1/")
        return Target(self.host, self.port, (prefix if versioned else "") + path)

    def request_path(self, params: Mapping[str, Value] | None = None) -> str:
        """Path and query; `params` take the place of those of the same name in the URL."""
        added = {name: str(value) for name, value in (params or {}).items()}
        kept = [part for part in self.query.split("&") if part and _name(part) not in added]
        query = "&".join([*kept, urlencode(added)]).strip("&")
        return f"{self.path}?{query}" if query else self.path


async def resolve(target: Target) -> tuple[Address, ...]:
    """All addresses of the host, families taking turns; `LegError` where there is none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_DGRAM)
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the name cannot be looked up"
        raise LegError(FailureKind.NAME, f"no address for {target.host}: {reason}") from None
    families = (socket.AF_INET, socket.AF_INET6)
    return interleave([Address(i[0], _sockaddr(i[4])) for i in found if i[0] in families])


def interleave(addresses: list[Address]) -> tuple[Address, ...]:
    """Alternate the families, beginning with the first one's (RFC 8305 section 4)."""
    unique = list(dict.fromkeys(addresses))
    if not unique:
        return ()
    first = [a for a in unique if a.family == unique[0].family]
    other = [a for a in unique if a.family != unique[0].family]
    paired = [a for pair in zip(first, other, strict=False) for a in pair]
    rest = min(len(first), len(other))
    return (*paired, *first[rest:], *other[rest:])


def _sockaddr(given: SockAddr | tuple[int, bytes]) -> SockAddr:
    return given  # type: ignore[return-value] # the bytes are of families we do not use


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0])


def _host(name: str, url: str) -> str:
    if ":" in name:
        return name
    try:
        host = name.encode("idna").decode("ascii")
    except UnicodeError:  # RFC 1035 section 2.3.4: a label has 1 to 63 octets
        host = ""
    if not _HOST.fullmatch(host):
        raise _bad_url(url, "what it calls a host is no host name")
    return host


def _check_text(url: str) -> None:
    try:
        url.encode()
    except UnicodeEncodeError:
        raise _bad_url(url, "it holds bytes that are no UTF-8", "type it again") from None
    if any(ord(letter) < 0x20 or letter == "\x7f" for letter in url):
        raise _bad_url(url, "it holds control characters", "type it again")


def _bad_url(url: str, reason: str, remedy: str = _SHAPE) -> RequestError:
    url = redact(url)
    shown = url if len(url) <= 80 else url[:77] + "..."
    if not shown.isprintable():
        shown = ascii(shown)[1:-1]
    return RequestError(
        ErrorCode.BAD_REQUEST, f'"{shown}" is no usable URL: {reason}', remedy=remedy
    )
