"""Where the outcome of a run goes: standard error, and a file if one was named."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import click

from netem.cli.streams import say
from netem.cli.summary import Outcome, as_json, as_lines
from netem.errors import NetemError

__all__ = ["reporting"]


@contextlib.contextmanager
def reporting(file: Path | None) -> Iterator[Callable[[Outcome], None]]:
    """The file is opened before anything else: a run without its report would be wasted."""
    opened = None
    if file is not None:
        try:
            opened = file.open("w", encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--json {file}: {error.strerror}") from None

    def report(outcome: Outcome) -> None:
        for line in as_lines(outcome):
            say(f"netem: {line}")
        if opened is not None:
            _write(opened, outcome)

    try:
        yield report
    finally:
        if opened is not None:
            with contextlib.suppress(OSError):
                # Said already, if it is what could not be written.
                opened.close()


def _write(opened: TextIO, outcome: Outcome) -> None:
    try:
        json.dump(as_json(outcome), opened, indent=2, ensure_ascii=False)
        opened.write("\n")
        opened.flush()
    except OSError as error:
        raise NetemError(f"--json {opened.name}: {error.strerror}") from None
