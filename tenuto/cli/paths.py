"""Paths on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["NamedPath"]


class NamedPath(click.Path):
    """A path that is not empty: pathlib would take that for the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty path; name one, or leave the option out", param, ctx)
        return super().convert(value, param, ctx)
