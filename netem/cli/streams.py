"""Standard output and standard error, which may be full, closed or without a reader."""

import errno
import os
import sys
from typing import TextIO

import click

from netem.errors import NetemError

__all__ = ["fill_standard_descriptors", "say", "tell"]


def fill_standard_descriptors() -> None:
    """Open those that are closed, or the next file opened would be taken for one of them.

    Opened the wrong way round: whoever uses them, the command above all, is refused as before.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if fd else os.O_WRONLY)
            os.set_inheritable(fd, True)
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def tell(line: str = "") -> None:
    """On standard output, which is what was asked for: NetemError if it cannot be written."""
    try:
        click.echo(line)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        sys.stdout = _nowhere()
        raise NetemError(f"standard output: {error.strerror}") from None


def say(line: str) -> None:
    """On standard error, beside what was asked for: where nobody listens, nothing is to be done.

    The command's status must not change because of it.
    """
    try:
        click.echo(line, err=True)
    except OSError:
        # Python would try again at its exit, and fail.
        sys.stderr = _nowhere()
