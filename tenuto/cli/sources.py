"""`tenuto sources`: what can be played, with which parameters and voices."""

from __future__ import annotations

import asyncio
import json
import sys

import click
from rich import box
from rich.console import Console
from rich.table import Table

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import list_sources, shared_engine
from tenuto.sources.kinds import KINDS
from tenuto.sources.listing import ListedFiles, ListedSource, Listing

__all__ = ["sources"]

_PIPED_WIDTH = 100

_HELP = """List what this installation can play: sources, their parameters, and voices.

\b
Examples:
  tenuto sources
  tenuto sources --voices              all voices and their variants
  tenuto sources --voices en           those that speak English
  tenuto sources --json | jq '.sources[] | select(.available) | .source'

What a server that runs somewhere has is told by its /v1/sources, in the same JSON.

Exit status: 0; 1 if voices are asked for and there are none; 2 if no voice speaks LANG."""


@click.command(help=_HELP, short_help="List what can be played, and the voices.")
@click.option(
    "--voices",
    is_flag=False,
    flag_value="",
    metavar="[LANG]",
    help="List the voices instead, those of a language or all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sources(voices: str | None, as_json: bool) -> None:
    listing = asyncio.run(_list(voices))
    if voices is not None and "voices" not in listing:
        speech = next(each for each in listing["sources"] if each["source"] == "speech")
        raise RequestError(ErrorCode.NO_VOICE, speech["remedy"])
    if as_json:
        print(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False)
    if voices is not None:
        _print_voices(console, listing)
    else:
        _print_sources(console, listing["sources"], listing["files"])


async def _list(language: str | None) -> Listing:
    try:
        return await list_sources(test_sources=True, language=language)
    finally:
        shared_engine().close()


def _print_sources(console: Console, listed: list[ListedSource], files: ListedFiles) -> None:
    overview = _table("source", "what it plays", "live", "here")
    for source in listed:
        overview.add_row(source["source"], source["help"], _live(source), _here(source))
    console.print(overview)
    for source in listed:
        if source["remedy"]:
            line = f"No {source['source']} here: {source['remedy']}\n"
            console.print(line, markup=False, soft_wrap=True)
    line = f"Files: {', '.join(files['formats'])}"
    line += f"; {files['remedy']}" if files["remedy"] else ""
    console.print(line, markup=False, soft_wrap=True)
    console.print()
    for kind in KINDS:
        if not kind.parameters:
            continue
        table = _table(kind.name, "what it is", "values", "default")
        for parameter in kind.parameters:
            default = parameter.default
            shown = "" if default is None else str(default)
            if isinstance(default, float):
                shown = f"{default:g}"
            table.add_row(f"{parameter.name}=", parameter.help, parameter.values, shown)
        console.print(table)


def _print_voices(console: Console, listing: Listing) -> None:
    table = _table("voice", "name", "languages")
    for voice in listing["voices"]:
        table.add_row(voice["voice"], voice["name"], ", ".join(voice["languages"]))
    console.print(table)
    console.print("Each takes a variant, such as en-us+f3:", style="bold")
    console.print(", ".join(listing["variants"]), markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=number == 0, style="bold" if number == 0 else None)
    return table


def _live(source: ListedSource) -> str:
    if source["live"] is None:
        return "as --stdin says"
    return "live" if source["live"] else "pausable"


def _here(source: ListedSource) -> str:
    if not source["available"]:
        return "no"
    return f"with {source['needs']}" if source["needs"] else "yes"
