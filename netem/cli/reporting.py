"""Where the outcome of a run goes: standard error, and a file if one was named."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from netem.cli.summary import Outcome, as_json, as_lines
from netem.errors import NetemError

__all__ = ["reporting"]


@contextlib.contextmanager
def reporting(file: Path | None) -> Iterator[Callable[[Outcome], None]]:
    """The file is opened before anything else: a run without its report would be wasted."""
    with contextlib.ExitStack() as undo:
        opened = None
        if file is not None:
            try:
                opened = undo.enter_context(file.open("w", encoding="utf-8"))
            except OSError as error:
                raise click.UsageError(f"--json {file}: {error.strerror}") from None

        def report(outcome: Outcome) -> None:
            for line in as_lines(outcome):
                click.echo(f"netem: {line}", err=True)
            if opened is not None:
                try:
                    json.dump(as_json(outcome), opened, indent=2, ensure_ascii=False)
                    opened.write("\n")
                    opened.flush()
                except OSError as error:
                    raise NetemError(f"--json {file}: {error.strerror}") from None

        yield report
