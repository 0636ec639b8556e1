"""The commands, and what their exit statuses mean."""

import io
import sys
from typing import NoReturn

import click

from netem.cli.agreeing import agree
from netem.cli.lines import lines_command
from netem.cli.listing import BAD_PROFILE, list_profiles, show_profile
from netem.cli.measuring import measure
from netem.cli.probing import probe_command
from netem.cli.run import run
from netem.cli.streams import say
from netem.errors import NetemError
from netem.profile.errors import ProfileError

__all__ = ["COULD_NOT", "main"]

COULD_NOT = 125
"""As `timeout`, `env` and `docker run` have it: we failed, not the command."""

EPILOG = """\b
Exit status of `run`:
  the command's own; 128 and the signal's number if one killed it
  125  the conditions could not be made, or did not last: nothing was measured
  126  the command could not be executed
  127  there is no such command
  2    wrong usage, or a profile that is none
"""


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Put any command behind a bad network: loss, delay, bottlenecks, blocked UDP, NAT."""


for command in (agree, lines_command, list_profiles, measure, probe_command, run, show_profile):
    cli.add_command(command)


def main() -> NoReturn:
    """Every expected failure is one line on standard error."""
    try:
        status = cli.main(prog_name="python -m netem", standalone_mode=False)
    except click.exceptions.Abort:
        _leave("interrupted", 130)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except click.ClickException as error:
        words = io.StringIO()
        error.show(words)
        say(words.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except ProfileError as error:
        _leave(str(error), BAD_PROFILE)
    except NetemError as error:
        _leave(str(error), COULD_NOT)
    except OSError as error:
        # What is left is our own output: the folder, or the disk, it goes to.
        _leave(f"{error.filename or 'output'}: {error.strerror or error}", COULD_NOT)
    sys.exit(status if isinstance(status, int) else 0)


def _leave(words: str, status: int) -> NoReturn:
    say(f"netem: {words}")
    sys.exit(status)
