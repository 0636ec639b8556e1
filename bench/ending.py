"""How a bench ends when it is not let to its end: without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tenuto.cli.standard import is_full, silence

__all__ = ["INTERRUPTED", "status"]

INTERRUPTED = 128 + 2
"""As a shell reports SIGINT."""


def status(main: Callable[[], int]) -> int:
    """The exit status of `main`, also where Ctrl-C or standard output ends it."""
    try:
        result = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence(sys.stdout)  # whoever read it has seen enough
        return 1
    except OSError as error:
        if not is_full(error):
            raise
        silence(sys.stdout)
        print(f"cannot write standard output: {error.strerror}", file=sys.stderr)
        return 1
    return result
