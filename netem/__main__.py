"""`python -m netem`: put any command behind a bad network."""

import signal
import sys


def start() -> None:
    """Load the commands and run one; Ctrl-C meanwhile ends without a word."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from netem.cli import main
    from netem.cli.streams import fill_standard_descriptors

    fill_standard_descriptors()
    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except KeyboardInterrupt:
        # Between two of its steps: before it listens, or once it has said all.
        sys.exit(130)


if __name__ == "__main__":
    start()
