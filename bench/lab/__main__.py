"""`python -m bench.lab`: what `tenuto lab` is."""

from __future__ import annotations

import sys

from tenuto.cli.main import cli

if __name__ == "__main__":
    cli.main(["lab", *sys.argv[1:]], prog_name="tenuto")
