"""`tenuto lab` lives beside the source, in `bench`, which no wheel holds: it is looked for."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

import tenuto
from tenuto.errors import OperatorError

__all__ = ["lab"]

_ROOT = Path(tenuto.__file__).parents[1]


def _found() -> click.Command:
    if not (_ROOT / "bench" / "lab" / "command.py").is_file():
        return _absent()
    if str(_ROOT) not in sys.path:
        # Last: nothing that lies in a clone's folder goes before an installed package.
        sys.path.append(str(_ROOT))
    command = import_module("bench.lab.command").lab
    assert isinstance(command, click.Command)
    return command


def _absent() -> click.Command:
    def refuse(arguments: tuple[str, ...]) -> NoReturn:
        raise OperatorError(
            "the loss lab is not part of an installed package",
            remedy="have it from a clone of Tenuto's repository: pip install -e . in there",
        )

    return click.Command(
        "lab",
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        short_help="(in a clone only) Compare all ways to send over the same bad networks.",
    )


lab = _found()
