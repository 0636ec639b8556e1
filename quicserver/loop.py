"""Which event loop runs a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

__all__ = ["loop_factory"]


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists (a TLS connection costs a quarter of the memory there).

    Elsewhere a selector loop: Windows' proactor has no readers for our UDP sockets.
    """
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop if sys.platform == "win32" else None
    return uvloop.new_event_loop
