"""What differs between the systems a server runs on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable

__all__ = ["loop_factory", "raise_descriptor_limit", "spare_collector"]

_DESCRIPTORS = 65536


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


def spare_collector() -> None:
    """What is loaded by now stays for good: the collector of cycles need not look through it.

    A full collection holds up every listener, and half of what it looks at is code.
    """
    gc.collect()
    gc.freeze()
