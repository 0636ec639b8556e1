"""Restart in place: the sockets go over to the same command, run anew in the same process.

They are never closed, so no client is refused meanwhile: connects wait in the backlog of the
kernel, datagrams in its buffer, and what came to open a connection while we drained goes along.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from quicserver.knocks import Knock
from tenuto.errors import OperatorError

__all__ = ["CHECK_PATIENCE", "Estate", "become_successor", "check_successor", "take_over"]

CHECK_PATIENCE = 20.0
"""Seconds for the successor to say that it would start."""

_VARIABLE = "TENUTO_SOCKETS"
_MOST_REASON = 300


@dataclass(slots=True)
class Estate:
    """What one process leaves to the next: bound sockets, and who knocked meanwhile."""

    sockets: list[socket.socket] = field(default_factory=list)
    knocks: list[Knock] = field(default_factory=list)

    def close(self) -> None:
        for each in self.sockets:
            each.close()


def take_over() -> Estate:
    """What a predecessor in this process has left; empty where there was none."""
    try:
        left = json.loads(os.environ.pop(_VARIABLE, "{}"))
        descriptors = [int(each) for each in left.get("sockets", [])]
        letter = left.get("knocks")
    except (ValueError, TypeError, AttributeError):
        return Estate()
    estate = Estate()
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # It is no socket: somebody else set the variable.
            estate.sockets.append(socket.socket(fileno=descriptor))
            estate.sockets[-1].set_inheritable(False)
            estate.sockets[-1].setblocking(False)
    if estate.sockets and isinstance(letter, int):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            estate.knocks = _read_knocks(letter)
    return estate


def become_successor(estate: Estate) -> NoReturn:
    """Run the command line of this process anew, with the same process id."""
    left: dict[str, object] = {"sockets": [each.fileno() for each in estate.sockets]}
    for each in estate.sockets:
        each.set_inheritable(True)
    if estate.knocks:
        # Elsewhere than on Linux they knock again.
        with contextlib.suppress(OSError, AttributeError):
            left["knocks"] = _write_knocks(estate.knocks)
    os.environ[_VARIABLE] = json.dumps(left)
    try:
        os.execv(sys.executable, _command())
    except OSError as error:
        raise OperatorError(
            f"cannot begin anew: {sys.executable}: {error.strerror}", remedy="start the server"
        ) from None


def _write_knocks(knocks: Sequence[Knock]) -> int:
    """The descriptor of a file in memory: no disk may be full of anything."""
    descriptor = os.memfd_create("tenuto knocks", 0)
    text = json.dumps([each.to_json() for each in knocks])
    with os.fdopen(os.dup(descriptor), "w", encoding="ascii") as file:
        file.write(text)
    return descriptor


def _read_knocks(descriptor: int) -> list[Knock]:
    with os.fdopen(descriptor, encoding="ascii") as file:
        file.seek(0)
        return [Knock.from_json(*each) for each in json.load(file)]


async def check_successor() -> str:
    """Why the same command would not start now; empty where it would."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_command(),
            "--check",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:  # The interpreter is gone, or there is no descriptor, no memory left.
        return f"it cannot be asked: {sys.executable}: {error.strerror or error}"
    try:
        async with asyncio.timeout(CHECK_PATIENCE):
            _, said = await process.communicate()
    except TimeoutError:
        return f"it did not say within {CHECK_PATIENCE:g} s whether it would start"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return ""
    return _reason(said.decode("utf-8", "replace"), process.returncode)


def _command() -> list[str]:
    """The interpreter may have been found by another name than it was started by."""
    return [sys.executable, *sys.orig_argv[1:]]


def _reason(said: str, status: int | None) -> str:
    """Its own line, or the last one of a traceback."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line.removeprefix("tenuto: ") for line in lines if line.startswith("tenuto: ")]
    return (own or lines or [f"it ends with status {status}"])[-1][:_MOST_REASON]
