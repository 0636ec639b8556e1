"""The loss lab's command line."""

from netem.cli.main import main

__all__ = ["main"]
