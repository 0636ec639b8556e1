"""How a process of our own is started: with our package, and nothing of the caller's folder."""

import sys
from pathlib import Path
from typing import Final

import netem

__all__ = ["python_argv"]

# The caller's folder may hold a `random.py`, which `python -m` would take for the library's.
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); import netem; sys.path.pop(0); "
    "import importlib; importlib.import_module(sys.argv[2]).main(sys.argv[3:])"
)


def python_argv(module: str, *arguments: str) -> list[str]:
    """The command line that runs `main(arguments)` of one of our modules."""
    home = str(Path(netem.__file__).parents[1])
    return [sys.executable, "-P", "-c", _BOOT, home, module, *arguments]
