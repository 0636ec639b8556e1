"""How far the listeners of a session have come, which bounds what is produced for them."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.session.cursor import Cursor

__all__ = ["Frontier"]


class Frontier:
    """One past the highest frame that any listener was sent, as far as that is worth.

    What has arrived counts for ever. What was only sent counts as long as its listener is there
    and not silent: a dead connection may neither run ahead of the living nor keep a source at
    work. So the frontier goes back when the one who leads it turns out to be silent.
    """

    __slots__ = ("_arrived", "_cursors", "_leader", "value")

    def __init__(self, cursors: Sequence[Cursor], start: int) -> None:
        self._cursors = cursors
        self._leader: Cursor | None = None
        """Whom the frontier was sent to; None where it has arrived."""
        self._arrived = start
        self.value = start
        """As of the last call."""

    def at(self, now: float) -> int:
        if self._leader is not None and now > self._leader.silent_at:
            self._look(now)
        return self.value

    def sent(self, cursor: Cursor, now: float) -> None:
        """This cursor has moved, or has been heard of."""
        if cursor.next > self.value and now <= cursor.silent_at:
            self.value = cursor.next
            self._leader = cursor

    def arrived(self, until: int, now: float) -> None:
        self._arrived = max(self._arrived, until)
        if self._arrived >= self.value:
            self.value = self._arrived
            self._leader = None

    def left(self, cursor: Cursor, now: float) -> None:
        if cursor is self._leader:
            self._look(now)

    def restart(self, base: int) -> None:
        """Nothing below `base` matters any longer."""
        self._arrived = self.value = base
        self._leader = None

    def _look(self, now: float) -> None:
        self.value = self._arrived
        self._leader = None
        for cursor in self._cursors:
            self.sent(cursor, now)
