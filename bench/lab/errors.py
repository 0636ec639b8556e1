"""How a run fails."""

from __future__ import annotations

from tenuto.errors import ErrorCode, TenutoError

__all__ = ["Interrupted", "LabFailedError"]


class LabFailedError(TenutoError):
    """The lab's own machinery gave out: what has been measured before stands."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(ErrorCode.INTERNAL, message, remedy=remedy)


class Interrupted(Exception):  # noqa: N818 - what happened, and no mistake
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
