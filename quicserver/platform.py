"""What differs between the systems a server runs on."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Callable
from functools import partial

__all__ = [
    "loop_factory",
    "raise_descriptor_limit",
    "return_freed_memory",
    "spare_collector",
    "trim_heap",
]

_DESCRIPTORS = 65536

_FULL_COLLECTIONS = 3
"""Collections of the middle generation, in place of ten, after which a full one may be due."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MAPPED_FROM = 128 * 1024
_TRIMMED_FROM = 1024 * 1024

TRIM_INTERVAL = 30.0
"""Seconds between two trims of the heap, at least."""

_TRIM_SHARE = 10_000


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists (a TLS connection costs a quarter of the memory there).

    Elsewhere a selector loop: Windows' proactor has no readers for our UDP sockets.
    """
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop if sys.platform == "win32" else None
    return uvloop.new_event_loop


def raise_descriptor_limit() -> None:
    """Allow as many open sockets as the system lets us; the usual 1,024 are soon gone."""
    try:
        import resource
    except ImportError:
        return  # Windows counts otherwise.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def return_freed_memory() -> None:
    """Have glibc give large blocks back to the system when they are freed.

    By itself it learns from the first such block (a TLS connection has one of 256 KiB) to put
    them onto its heap instead, which then has the size of the worst moment, and holes.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # Another C library has no such knobs.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)
        mallopt(_M_TRIM_THRESHOLD, _TRIMMED_FROM)


async def trim_heap(
    trim: Callable[[], object] | None = None, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Give back the holes of the heap as well, every now and then and until cancelled.

    Listeners come and go, and glibc touches one free page after the other while others lie idle:
    without this a server of steady load grows for hours into the heap of its worst moment. It
    takes 1 ms for 100 MiB; no more than a ten-thousandth of the time goes into it.
    """
    trim = trim or _malloc_trim()
    if trim is None:
        return
    wait = TRIM_INTERVAL
    while True:
        await asyncio.sleep(wait)
        began = clock()
        trim()
        wait = max(TRIM_INTERVAL, (clock() - began) * _TRIM_SHARE)


def _malloc_trim() -> Callable[[], object] | None:
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # Another C library has no such call.
        return None
    call.argtypes = [ctypes.c_size_t]
    return partial(call, 0)


def spare_collector() -> None:
    """What is loaded by now stays for good: the collector of cycles need not look through it.

    A full collection holds up every listener, and half of what it looks at is code. There may be
    more of them, for connections that ended are in cycles: until one comes, a busy server would
    hold more of those than of living ones. None comes before what is new is a quarter of what
    has long been there.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_COLLECTIONS)
