"""The ways to send that the lab compares, by name: `register` makes one of them.

A mode is a listener's side: a function that opens a connection, asks for frames and notes each one
(`bench.lab.listening`). What sends to it is the product's server or the reference server, which
both run in every wave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from bench.lab.record import ModeNote
from tenuto.errors import OperatorError

__all__ = ["MODES", "Mode", "choose", "register"]

_PRODUCT: Final = "bench.lab.listening.product:listen"
_REFERENCE: Final = "bench.lab.reference.client:listen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    name: str
    summary: str
    listener: str
    """`module:function`, as `bench.lab.listening.program` calls it."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    """What the function is told, beside what every flow is."""
    reference: bool = False
    """A bare sender to compare with, no part of the product."""
    congestion: str = "cubic"
    """TCP's congestion control on both ends of its link."""

    def note(self) -> ModeNote:
        return ModeNote(name=self.name, summary=self.summary, reference=self.reference)


MODES: Final[dict[str, Mode]] = {}
"""In the order in which reports show them; the first is what others are compared with."""


def register(mode: Mode) -> Mode:
    """Have `mode` among those of every run."""
    if mode.name in MODES:
        raise ValueError(f"two modes are called {mode.name}")
    MODES[mode.name] = mode
    return mode


def choose(names: Iterable[str]) -> tuple[Mode, ...]:
    """Those of these names, in the order of the registry; all for none. Raises `OperatorError`."""
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in MODES:
            near = get_close_matches(name.lower(), MODES, n=1, cutoff=0.4)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(MODES)}"
            raise OperatorError(f"no mode is called {name!r}", remedy=remedy)
    return tuple(mode for mode in MODES.values() if not wanted or mode.name in wanted)


def _product(name: str, summary: str, transport: str, congestion: str = "cubic") -> None:
    options: dict[str, str | int] = {"transport": transport}
    register(
        Mode(
            name=name,
            summary=summary,
            listener=_PRODUCT,
            options=options,
            congestion=congestion,
        )
    )


def _reference(name: str, summary: str, way: str, *, copies: int = 0, floor: bool = False) -> None:
    options: dict[str, str | int] = {"way": way, "copies": copies, "floor": int(floor)}
    register(Mode(name=name, summary=summary, listener=_REFERENCE, options=options, reference=True))


_FLOOR: Final = "with a window of never less than 32 KiB"

_product("quic-stream", "one QUIC stream of records, by Tenuto's HTTP/3 door", "quic")
_product("tcp-cubic", "HTTP/1.1 chunks over TLS, by Tenuto's TCP door, with cubic", "tcp")
_product("tcp-bbr", "HTTP/1.1 chunks over TLS, by Tenuto's TCP door, with BBR", "tcp", "bbr")
_reference("ref-datagram", "bare aioquic: a DATAGRAM for each frame", "datagram")
_reference(
    "ref-datagram-floor",
    f"bare aioquic: a DATAGRAM for each frame, {_FLOOR}",
    "datagram",
    floor=True,
)
_reference("ref-streams", "bare aioquic: a unidirectional stream for each frame", "streams")
_reference(
    "ref-streams-floor",
    f"bare aioquic: a unidirectional stream for each frame, {_FLOOR}",
    "streams",
    floor=True,
)
_reference(
    "ref-datagram-copy-floor",
    f"bare aioquic: a DATAGRAM for each frame, again 20 ms later, {_FLOOR}",
    "datagram",
    copies=1,
    floor=True,
)
