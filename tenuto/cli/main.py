"""The command `tenuto`: its own commands, and those that other packages bring."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import click

from tenuto import __version__
from tenuto.cli.errors import OutputError
from tenuto.cli.leaving import leave
from tenuto.cli.place import shown
from tenuto.cli.standard import is_full, silence, stand_in
from tenuto.errors import OperatorError, RequestError, TenutoError

__all__ = ["Tenuto", "cli", "main"]

ENTRY_POINTS = "tenuto.commands"
"""The group in which a front door announces its command, so that nothing here imports it."""

_OWN = {
    "certs": "tenuto.cli.certs:certs",
    "doctor": "tenuto.cli.doctor:doctor",
    "lab": "tenuto.cli.lab:lab",
    "play": "tenuto.cli.play:play",
    "sources": "tenuto.cli.sources:sources",
    "speak": "tenuto.cli.speak:speak",
    "token": "tenuto.cli.token:token",
}

_INTERRUPTED = 128 + 2  # as a shell reports SIGINT

_HELP = """Live voice over HTTP/3, with a TCP fallback that the listener never notices.

\b
Begin:
  tenuto serve                      start a server on this machine
  tenuto speak 'Hello.'             have it speak
  tenuto speak 'Hello.' -o a.wav    ... into a file

Each command explains itself with --help."""


class Tenuto(click.Group):
    """Loads a command when it is asked for and reports every error in one line.

    Exit status: 0; 1 for a failure of the network, a server or standard output; 2 for what
    the user must change; 130 after Ctrl-C.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_OWN, *_entry_points(), *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        known = {**_entry_points(), **_own()}
        return _load(known[cmd_name]) if cmd_name in known else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(_unknown(name, self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "tenuto",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        stand_in()
        sys.exit(_status(lambda: super(Tenuto, self).main(args, prog_name, None, False, **extra)))


def _status(run: Callable[[], object]) -> int:
    """Run a command and turn how it ended into an exit status and at most one line."""
    try:
        status = _outcome(run)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone, which is no error worth a word.
        silence(sys.stdout)
        silence(sys.stderr)
        return 1
    except OSError as error:
        if not is_full(error):
            raise
        silence(sys.stdout)
        return _say(str(OutputError(error)), 1)
    return status


def _outcome(run: Callable[[], object]) -> int:
    try:
        result = run()
    except click.exceptions.Abort:
        return _INTERRUPTED
    except click.UsageError as error:
        return _say(_usage(error), 2)
    except click.ClickException as error:
        return _say(error.format_message(), 2)
    except TenutoError as error:
        return _say(str(error), _mistake_of(error))
    return result if isinstance(result, int) else 0


def _mistake_of(error: TenutoError) -> int:
    asked_wrongly = isinstance(error, RequestError) and error.code.status < 500
    return 2 if asked_wrongly or isinstance(error, OperatorError) else 1


def _say(message: str, status: int) -> int:
    """A server's words may hold anything; on the terminal they stay one harmless line."""
    try:
        print(f"tenuto: {shown(message)}", file=sys.stderr)
    except OSError:
        silence(sys.stderr)
    return status


def _usage(error: click.UsageError) -> str:
    message = " ".join(error.format_message().rstrip(".").split())
    stop = "" if message.endswith("?") else "."
    path = error.ctx.command_path if error.ctx is not None else "tenuto"
    return f"{message}{stop} see {path} --help"


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no command {name!r}; {hint}"


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _own() -> dict[str, EntryPoint]:
    return {name: EntryPoint(name, value, ENTRY_POINTS) for name, value in _OWN.items()}


def _load(point: EntryPoint) -> click.Command:
    """The command, or one in its place that says why it cannot be had."""
    try:
        module = import_module(point.module)
        command = getattr(module, point.attr)
    except (ImportError, AttributeError, SyntaxError) as error:
        return _broken(point.name, f"{type(error).__name__}: {error}")
    if not isinstance(command, click.Command):
        return _broken(point.name, f"{point.value} is no click command")
    return command


def _broken(name: str, reason: str) -> click.Command:
    def refuse(arguments: tuple[str, ...]) -> NoReturn:
        raise OperatorError(
            f"the command {name} cannot be loaded ({reason})",
            remedy="install Tenuto again with all it depends on",
        )

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        short_help="(cannot be loaded)",
    )


@click.command(
    cls=Tenuto,
    help=_HELP,
    # So that every option has its variable, such as TENUTO_SERVE_PORT.
    context_settings={"auto_envvar_prefix": "TENUTO", "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tenuto", message="%(prog)s %(version)s")
def cli() -> None:
    pass


def main() -> NoReturn:
    """The console script."""
    try:
        cli.main()
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 1)
        raise
    raise AssertionError("a command ends the process")
