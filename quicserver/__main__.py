"""`python -m quicserver` is `tenuto serve`, also where nothing is installed."""

import sys

from quicserver.command import serve
from tenuto.cli.main import cli

cli.add_command(serve)
cli.main(["serve", *sys.argv[1:]])
