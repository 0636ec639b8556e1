"""How far the listeners who left had come, for when they are back."""

from __future__ import annotations

from collections import OrderedDict

from tenuto.session.pace import PlayoutEstimate

__all__ = ["Playouts"]


class Playouts:
    """The estimates of the `most` listeners who left last, by name."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left: OrderedDict[str, PlayoutEstimate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def left(self, listener: str, pace: PlayoutEstimate) -> None:
        """Of several connections of one listener the one counts that had come furthest."""
        known = self._left.get(listener)
        self._left[listener] = pace if known is None or known.end <= pace.end else known
        self._left.move_to_end(listener)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def of(self, listener: str) -> PlayoutEstimate | None:
        return self._left.get(listener)

    def forget(self) -> None:
        """What they had is not played any more."""
        self._left.clear()
