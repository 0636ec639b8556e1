"""What a source of speech is to the rest of Tenuto."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from tenuto.media import AudioFormat

__all__ = ["MAX_RUN_SIZE", "Mark", "Source"]

MAX_RUN_SIZE = 64 * 1024
"""Bytes in one run at most: what a source may hold ahead of back-pressure."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The text at `text_offset` (code points) begins to sound with the next byte."""

    text_offset: int


class Source(Protocol):
    """A stream of PCM byte runs, pulled as fast as listeners need it and never faster.

    A source that cannot give what was asked raises `RequestError` while it is opened,
    before its first byte; one that fails later raises `SourceError` from `stream`.
    """

    @property
    def kind(self) -> str:
        """Its name in logs and in `POST /v1/sessions`."""
        ...

    @property
    def format(self) -> AudioFormat:
        """That of the first byte."""
        ...

    @property
    def pausable(self) -> bool:
        """False: it is live and cannot wait. What nobody takes in time is dropped by the
        session, the oldest first.
        """
        ...

    @property
    def patience(self) -> float | None:
        """Seconds it may take to give its next run before it counts as failed; None: no bound."""
        ...

    def stream(self) -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        """Runs of at most MAX_RUN_SIZE bytes, cut anywhere, and marks between them.

        An `AudioFormat` says that the bytes behind it are of this format; it comes where
        whole samples end. Called once. Cancellation and `aclose()` run its `finally` blocks
        and free the engine behind it within one frame.
        """
        ...
