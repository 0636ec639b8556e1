"""`python -m quicserver` is `tenuto serve`, also where nothing is installed."""

import signal
import sys


def main() -> None:
    """Ctrl-C before all is loaded ends it without a word."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from quicserver.command import serve
    from tenuto.cli.main import cli

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.add_command(serve)
    cli.main(["serve", *sys.argv[1:]])


main()
