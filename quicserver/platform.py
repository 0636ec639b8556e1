"""What differs between the systems a server runs on."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable

__all__ = ["loop_factory", "raise_descriptor_limit", "return_freed_memory", "spare_collector"]

_DESCRIPTORS = 65536

_FULL_COLLECTIONS = 3
"""Collections of the middle generation, in place of ten, after which a full one may be due."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MAPPED_FROM = 128 * 1024
_TRIMMED_FROM = 1024 * 1024


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
