"""Where the console script begins, before anything slow is imported."""

from __future__ import annotations

import signal

__all__ = ["main"]


def main() -> None:
    """Load the commands and run one; Ctrl-C meanwhile ends without a word."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tenuto.cli.main import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
