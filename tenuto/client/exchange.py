"""What a leg is: one HTTP exchange over one connection of either transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

__all__ = ["Leg", "Request", "Response", "Timings", "Transport", "TransportChoice"]

Transport = Literal["quic", "tcp"]
TransportChoice = Literal["auto", "quic", "tcp"]


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request; `path` holds the query too, header names are lower-case."""

    method: str
    authority: str
    path: str = field(repr=False)  # a token may be in it, and in the headers
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """Status and headers; names are lower-case, and of equal ones the last is kept."""

    status: int
    headers: Mapping[str, str] = field(repr=False)


@dataclass(slots=True)
class Timings:
    """Seconds from the call of `open_stream` to each event; None until it has happened.

    They include what was lost on a transport that failed first.
    """

    connected: float | None = None
    """The handshake of the transport in use was complete."""
    response: float | None = None
    """Its response headers had come."""
    first_byte: float | None = None
    """The first byte of the body was read."""
    first_frame: float | None = None
    """The first frame was decoded."""


class Leg(Protocol):
    """One connection that carries one exchange.

    Not reading stops the peer: a leg holds a bounded number of body bytes.
    """

    @property
    def transport(self) -> Transport: ...

    @property
    def peer(self) -> str:
        """The address that answered, for people."""
        ...

    @property
    def buffered(self) -> int:
        """Body bytes that have come and were not read yet."""
        ...

    async def request(self, request: Request) -> Response:
        """Send the one request and wait for the final response headers.

        Raises `LegError`.
        """
        ...

    def unread(self, data: bytes) -> None:
        """Give back what was read last: `read` gives it again."""
        ...

    async def read(self) -> bytes:
        """The next run of the body; empty at its clean end.

        Raises `LegError` where the body was cut, after all that came before the cut.
        """
        ...

    def ping(self) -> None:
        """Show the server at once that we are here, and from where; never raises.

        QUIC: one packet that is answered, padded where the path is in doubt. TCP: nothing.
        """
        ...

    def rest(self, quiet: bool) -> None:
        """With `quiet` send nothing of ourselves from now on; without, again, and once at once."""
        ...

    def doze(self) -> None:
        """Send no more than keeps the connection: nothing is due, but word of it may come."""
        ...

    def rebind(self) -> bool:
        """Go on from another port, at once; whether this leg can.

        QUIC can, once its handshake is confirmed. TCP cannot.
        """
        ...

    def abort(self) -> None:
        """Let go of the connection at once; whoever reads meets a `LegError`."""
        ...

    async def aclose(self) -> None:
        """Close the connection; never raises."""
        ...
