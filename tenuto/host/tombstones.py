"""What is still known of sessions that are over."""

from __future__ import annotations

from collections import OrderedDict

from tenuto.errors import ErrorCode, RequestError
from tenuto.session import Session

__all__ = ["MAX_TOMBSTONES", "Tombstones"]

MAX_TOMBSTONES = 4096
"""Expired sessions whose last sequence is still known, so that 410 can name it."""


class Tombstones:
    """The last frame of each, where the text was in it, how it ended; the oldest are forgotten."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[int, int | None, bool]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def bury(self, session: Session, *, closed: bool) -> None:
        """`closed`: by command, and not by its time."""
        last = session.end - 1
        self._last[session.id] = (last, session.text_offset(last), closed)
        if len(self._last) > MAX_TOMBSTONES:
            self._last.popitem(last=False)

    def check(self, id: str) -> None:
        """Raises `RequestError` EXPIRED_SESSION for one that is known."""
        if id not in self._last:
            return
        last, text_offset, closed = self._last[id]
        detail: dict[str, int | float | str] = {"last": last}
        if closed:
            detail["closed"] = True
        if text_offset is not None:
            detail["text_offset"] = text_offset
        raise RequestError(
            ErrorCode.EXPIRED_SESSION,
            f"session {id} was closed" if closed else f"session {id} has expired",
            remedy="start a new one",
            detail=detail,
        )
