"""What a session says since it was flushed, as far as whoever flushed it here can know."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenuto.client.asking import Asking
from tenuto.client.target import Value

__all__ = ["Sources"]

Source = Mapping[str, Value] | None


class Sources:
    """Tells `Asking` the source of each epoch, so that a new session can say it.

    An answer to a flush names its epoch, and comes before that epoch's FORMAT or behind it.
    Others flush the same session, and FORMATs of epochs that were short are left out.
    `present` is the epoch of the last FORMAT, -1 before that of a new session.
    """

    def __init__(self, asking: Asking, present: Callable[[], int]) -> None:
        self._asking = asking
        self._present = present
        self._flushing: list[Source] = []
        """Of the flushes that have no answer yet."""
        self._answered: tuple[int, Source] | None = None
        """The newest epoch that an answer named, where its FORMAT is still to come."""

    @property
    def to_come(self) -> bool:
        """The session has been flushed, and nothing of what it says now was read."""
        return self._answered is not None

    def replacing(self, params: Source) -> None:
        """A flush is being said: an epoch that begins meanwhile has this source, we suppose."""
        self._flushing.append(params)

    def replaced(self, epoch: object, params: Source) -> None:
        """It was answered, and began this epoch, or another if it was refused."""
        self._flushing.remove(params)
        present = self._present()
        if not isinstance(epoch, int):
            return
        if epoch > present:
            self._answered = epoch, params
            self._asking.replaced(params, None)
        elif epoch < present and not self._flushing:
            self._asking.replaced(None, None)  # It is another's, which we took for ours.

    def restarted(self) -> None:
        """A new session was asked for what was wanted last."""
        if self._answered is not None:
            self._answered = 0, self._answered[1]

    def began(self, epoch: int, base: int) -> None:
        """FORMAT has come."""
        supposed = self._flushing[-1] if self._flushing else None
        if self._answered is None:
            return self._asking.replaced(supposed, base)
        answered, params = self._answered
        if epoch < answered:
            return None  # That one is over already.
        self._answered = None
        return self._asking.replaced(params if epoch == answered else supposed, base)
