"""The Markdown tables of docs and README: `python -m bench.table FILE`, FILE of `first_audio`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.ending import status

__all__ = ["main", "table"]

_COLUMNS = {
    ("quic", "tenuto"): "Tenuto, QUIC",
    ("quic", "aioquic"): "bare aioquic",
    ("chunked", "tenuto"): "Tenuto, TCP",
    ("chunked", "hypercorn"): "bare hypercorn",
}

Row = Mapping[str, Any]


def table(summary: Row, pattern: str) -> list[str]:
    """Lines of Markdown: first audio p50 and gap p99 for each load and server.

    Raises `ValueError` for what is no summary of the bench.
    """
    try:
        return _table(summary, pattern)
    except (AttributeError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"its rows are none of first_audio ({what})") from None


def _table(summary: Row, pattern: str) -> list[str]:
    rows = [row for row in summary["rows"] if row["pattern"] == pattern]
    columns = [key for key in _COLUMNS if any(_key(row) == key for row in rows)]
    lines = [
        "| listeners | " + " | ".join(_COLUMNS[key] for key in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for listeners in sorted({row["listeners"] for row in rows}):
        found = {_key(row): row for row in rows if row["listeners"] == listeners}
        cells = [_cell(found[key]) for key in columns]
        lines.append(f"| {listeners} | " + " | ".join(cells) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("file", type=Path, help="what `python -m bench first_audio` printed")
    parser.add_argument("--pattern", choices=["frames", "groups"], default="frames")
    options = parser.parse_args(arguments)
    try:
        lines = table(_summary(options.file), options.pattern)
    except (OSError, ValueError, RecursionError) as error:
        print(f"{options.file} cannot be used: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _summary(file: Path) -> Row:
    """The last line, which must be a summary of `first_audio`."""
    lines = file.read_text(encoding="utf-8").splitlines()
    last: Any = json.loads(lines[-1]) if lines else None
    if not isinstance(last, dict) or "rows" not in last:
        raise ValueError("its last line is no summary of first_audio; let the bench run to its end")
    return last


def _key(row: Row) -> tuple[str, str]:
    return row["transport"], row["server"]


def _cell(row: Row) -> str:
    if "not_measured" in row:
        return f"not measured: {row['not_measured']}"
    first, gap = (_shown(row[name]) for name in ("first_audio_ms.p50", "gap_ms.p99"))
    marks = [f"saturated: {row['saturated']}"] if row["saturated"] else []
    # They are in no percentile: who serves fewer serves those better.
    marks += [f"{row['silent']} silent"] if row["silent"] else []
    marks += ["starved"] if row["starved"] else []
    note = f" ({', '.join(marks)})" if marks else ""
    return f"{first} / {gap}{note}"


def _shown(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds:.1f}"


if __name__ == "__main__":
    sys.exit(status(main))
