"""The library that reaches the sound card, an extra: got, or told how to get."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenuto.cli.aside import Aside, aside
from tenuto.cli.leaving import hurry
from tenuto.errors import OperatorError

__all__ = [
    "ELSEWHERE",
    "OPENING",
    "forget_at_exit",
    "hanging",
    "load_aside",
    "load_sounddevice",
    "stderr_kept",
]

ELSEWHERE = "or write a file with --output speech.wav"

_STDERR = 2

OPENING = 5.0
"""Seconds that the library, and then a device, may take to open."""


def load_sounddevice() -> Any:
    """The library, or an `OperatorError` that says how to get it.

    PortAudio looks at all devices when it is loaded, and hangs where one of them does.
    """
    try:
        import sounddevice
    except ImportError:
        raise OperatorError(
            "no library to play sound with",
            remedy=f"pip install 'tenuto[speaker]', {ELSEWHERE}",
        ) from None
    except OSError:
        raise OperatorError(
            "sounddevice finds no PortAudio on this machine",
            remedy=f"install it (Debian: apt install libportaudio2), {ELSEWHERE}",
        ) from None
    except Exception as error:  # noqa: BLE001 - its own, of a module that does not load
        raise OperatorError(
            f"PortAudio does not begin: {error}",
            remedy=f"see to the system's sound settings, {ELSEWHERE}",
        ) from None
    return sounddevice


async def load_aside(beside: Aside = aside) -> None:
    """Load it, but wait for no more than `OPENING`."""
    try:
        with stderr_kept():
            await beside(load_sounddevice, OPENING)
    except TimeoutError:
        raise hanging() from None
    except asyncio.CancelledError:
        forget_at_exit()  # it goes on loading beside us
        raise


@contextmanager
def stderr_kept() -> Iterator[None]:
    """The library sends standard error to nowhere while PortAudio begins.

    Where that hangs, nobody would read what we say of it.
    """
    try:
        kept = os.dup(_STDERR)
    except OSError:  # it is closed
        yield
        return
    try:
        yield
    except BaseException:
        os.dup2(kept, _STDERR)
        raise
    finally:
        os.close(kept)


def hanging() -> OperatorError:
    """A device did not open in time. It is left behind."""
    forget_at_exit()
    return OperatorError(
        f"the loudspeaker did not open within {OPENING:.0f} s",
        remedy=f"choose another one in the system's settings, {ELSEWHERE}",
    )


def forget_at_exit() -> None:
    """Let the process end though a device hangs, or opens: PortAudio would wait, or crash."""
    hurry()
    # Not by an import, which would wait for the one that hangs.
    handler = getattr(sys.modules.get("sounddevice"), "_exit_handler", None)
    if handler is not None:
        atexit.unregister(handler)
