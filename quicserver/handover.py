"""Restart in place: the sockets go over to the same command, run anew in the same process.

They are never closed, so no client is refused meanwhile: connects wait in the backlog of the
kernel, datagrams in its buffer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["CHECK_PATIENCE", "become_successor", "check_successor", "take_over"]

CHECK_PATIENCE = 20.0
"""Seconds for the successor to say that it would start."""

_VARIABLE = "TENUTO_SOCKETS"
_MOST_REASON = 300


def take_over() -> list[socket.socket]:
    """What a predecessor in this process has left open; empty where there was none."""
    try:
        descriptors = [int(each) for each in json.loads(os.environ.pop(_VARIABLE, "[]"))]
    except (ValueError, TypeError):
        return []
    sockets = []
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # It is no socket: somebody else set the variable.
            sockets.append(socket.socket(fileno=descriptor))
            sockets[-1].set_inheritable(False)
            sockets[-1].setblocking(False)
    return sockets


def become_successor(sockets: Sequence[socket.socket]) -> NoReturn:
    """Run the command line of this process anew, with the same process id."""
    for each in sockets:
        each.set_inheritable(True)
    os.environ[_VARIABLE] = json.dumps([each.fileno() for each in sockets])
    os.execv(sys.executable, _command())


async def check_successor() -> str:
    """Why the same command would not start now; empty where it would."""
    process = await asyncio.create_subprocess_exec(
        *_command(),
        "--check",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
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
