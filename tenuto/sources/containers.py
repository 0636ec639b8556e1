"""FLAC, Ogg, MP3, AIFF and others, where the extra `audio` is installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from tenuto.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from tenuto.sources.sndfile import ContainerSamples

__all__ = ["CONTAINERS", "ContainerData", "can_decode", "open_container", "read_container"]

CONTAINERS = ("FLAC", "MP3", "Ogg Vorbis", "Ogg Opus", "AIFF", "AU", "CAF", "W64")
"""What libsndfile adds to WAV; it knows rarer ones too."""


@dataclass(frozen=True, slots=True)
class ContainerData:
    """What the header claims; `kind` is the numpy type to decode to."""

    rate: int
    channels: int
    kind: str


def can_decode() -> bool:
    """Is the extra `audio` here, with its library?"""
    try:
        import tenuto.sources.sndfile  # noqa: F401  # an extra
    except (ImportError, OSError):
        return False
    return True


def read_container(
    file: BinaryIO, name: str, what: str, given_up: Callable[[], bool] = lambda: False
) -> ContainerData:
    """Let libsndfile look at the header.

    Raises `RequestError(UNSUPPORTED_AUDIO)` where the extra is missing, or libsndfile can
    make nothing of the file. Where `given_up` says so it ends early, with whatever result.
    """
    try:
        from tenuto.sources.sndfile import read_data  # an extra
    except (ImportError, OSError):  # OSError: the package is there without its library.
        raise RequestError(
            ErrorCode.UNSUPPORTED_AUDIO,
            f"{name} is {what}; this server can play WAV files only",
            remedy="pip install 'tenuto[audio]' on the server, or convert it, for example: "
            "ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav",
        ) from None
    return ContainerData(*read_data(file, name, what, given_up))


def open_container(
    file: BinaryIO, name: str, data: ContainerData, given_up: Callable[[], bool] = lambda: False
) -> ContainerSamples:
    """Begin to decode; raises `SourceError` where the file is no longer what it was."""
    from tenuto.sources.sndfile import ContainerSamples  # an extra

    return ContainerSamples(file, name, data.channels, data.kind, given_up)
