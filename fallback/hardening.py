"""What is switched off in hypercorn 0.18.0, in one place; a test pins each reason."""

from __future__ import annotations

import hypercorn.protocol.h11 as h11_protocol
import hypercorn.protocol.ws_stream as ws_stream

__all__ = ["harden"]


async def _stay_on_http1(self: object, event: object) -> None:
    """No h2: it has no back-pressure at a zero window and leaks a task per client that leaves.

    Without ALPN a client could still ask by `Upgrade: h2c` or the PRI preface; both are now
    ordinary, bad HTTP/1.1.
    """


def _no_extensions(*arguments: object) -> None:
    """No permessage-deflate: it cannot be configured away and costs five times the CPU."""


def harden() -> None:
    """Idempotent, for the whole process."""
    h11_protocol.H11Protocol._check_protocol = _stay_on_http1  # type: ignore[method-assign]
    ws_stream.server_extensions_handshake = _no_extensions  # type: ignore[attr-defined, assignment]
