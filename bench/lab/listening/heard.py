"""What one flow heard, noted as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from bench.lab.payload import FRAME_NANO, HEADER

__all__ = ["FIRST_WITHIN", "Heard", "Record"]

FIRST_WITHIN: Final = 10.0
"""Seconds from the start within which a first frame has come, or none will."""

_NANO: Final = 1e9
_LONGEST_TROUBLE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Of a flow that is over, in seconds; moments are CLOCK_MONOTONIC's."""

    delays: tuple[float | None, ...]
    duplicates: int
    handshake: float | None
    first_audio: float | None
    first_due: float | None
    """The moment at which frame 0 was due, told by any frame."""
    trouble: str | None
    loop_lag: float

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Record:
        return cls(**{**told, "delays": tuple(told["delays"])})


class Heard:
    """The listener's notebook: `connected` once, `frame` for each payload."""

    def __init__(
        self, frames: int, patience: float, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._clock = clock
        self._frames = frames
        self._patience = int(patience * _NANO)
        self._delays: list[float | None] = [None] * frames
        self._missing = frames
        self._duplicates = 0
        self._began = clock()
        self._give_up = self._began + int(FIRST_WITHIN * _NANO)
        self._handshake: float | None = None
        self._first_audio: float | None = None
        self._first_due: int | None = None
        self._trouble: str | None = None

    def connected(self, after: float | None = None) -> None:
        """The handshake is complete: now, or `after` seconds from the start."""
        now = (self._clock() - self._began) / _NANO
        self._handshake = now if after is None else after

    def frame(self, payload: bytes) -> None:
        now = self._clock()
        if len(payload) < HEADER.size:
            self.fail(f"a frame of {len(payload)} bytes says nothing about itself")
            return
        number, due = HEADER.unpack_from(payload)
        if number >= self._frames:
            self.fail(f"frame {number} was never asked for")
            return
        if due > now:
            self.fail(f"frame {number} came {(due - now) / _NANO:g} s before it was due")
            return
        if self._first_due is None:
            self._first_due = due - number * FRAME_NANO
            self._first_audio = (now - self._began) / _NANO
            last_due = self._first_due + (self._frames - 1) * FRAME_NANO
            self._give_up = last_due + self._patience
        if self._delays[number] is not None:
            self._duplicates += 1
            return
        self._delays[number] = (now - due) / _NANO
        self._missing -= 1

    def fail(self, reason: str) -> None:
        """The first reason stays."""
        if self._trouble is None:
            self._trouble = reason[:_LONGEST_TROUBLE]

    async def hold(self) -> NoReturn:
        """Until the flow is ended: the connection stays open, and is closed when all is counted."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    @property
    def over(self) -> bool:
        """All has come, or what is missing has had its time."""
        return not self._missing or self._clock() > self._give_up

    def record(self, loop_lag: float) -> Record:
        if self._first_due is None:
            self.fail(f"no frame came within {FIRST_WITHIN:g} s")
        return Record(
            delays=tuple(self._delays),
            duplicates=self._duplicates,
            handshake=self._handshake,
            first_audio=self._first_audio,
            first_due=None if self._first_due is None else self._first_due / _NANO,
            trouble=self._trouble,
            loop_lag=loop_lag,
        )
