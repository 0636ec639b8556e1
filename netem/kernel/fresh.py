"""Another Python process of ours, whatever folder and environment this one was started in."""

import sys
from pathlib import Path
from typing import Final

import netem

__all__ = ["python_running"]

# The caller's folder may hold a `random.py`: only our own package is looked for in other places
# than the interpreter's.
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); import netem; sys.path.pop(0); "
    "from {module} import main; main(sys.argv[2:])"
)


def python_running(module: str, *arguments: str) -> list[str]:
    """The command that calls `main(arguments)` of one of our modules."""
    home = str(Path(netem.__file__).parents[1])
    # Nothing of site-packages is needed, and to look through it takes a third of the start.
    return [sys.executable, "-P", "-S", "-c", _BOOT.format(module=module), home, *arguments]
