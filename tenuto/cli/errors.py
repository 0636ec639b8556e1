"""What fails on the command's own side, each with the name that `--json` gives it."""

from __future__ import annotations

from typing import ClassVar

from tenuto.errors import ErrorCode, TenutoError
from tenuto.media import FRAME_DURATION

__all__ = ["CommandError", "FramesMissingError", "OutputError"]


class CommandError(TenutoError):
    """Exit status 1."""

    name: ClassVar[str]

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(ErrorCode.INTERNAL, message, remedy=remedy)


class OutputError(CommandError):
    """Standard output takes no more, for another reason than that its reader left."""

    name = "unwritable"

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"cannot write standard output: {error.strerror or error}",
            remedy="redirect it to where it can be written",
        )


class FramesMissingError(CommandError):
    """END came and its totals are right, but `count` frames in between never came."""

    name = "gaps"

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the stream has ended, but {count} of its frames "
            f"({count * FRAME_DURATION:.2f} s) never came",
            remedy="what came is kept; have the whole made again if the rest matters",
        )
