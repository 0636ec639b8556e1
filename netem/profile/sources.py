"""Where a profile's values come from: `source = "..."` for all of them, or the table `[source]`.

The table has a key for each value, `delay` for both directions or `"up.rate"` for one, and
`default` for all the others. A value we chose ourselves says "ours".
"""

from collections.abc import Iterator, Mapping
from typing import Final

from netem.profile.document import Document
from netem.profile.errors import ProfileError
from netem.profile.keys import SECTIONS, nearest
from netem.profile.units import quoted

__all__ = ["DEFAULT", "read_sources"]

DEFAULT: Final = "default"


def read_sources(document: Document) -> dict[str, str]:
    """The sources a document states, by key. Raises `ProfileError`."""
    stated = document.values.get("source", {})
    if isinstance(stated, str) and stated.isprintable():
        return {DEFAULT: stated}
    if not isinstance(stated, dict):
        raise ProfileError(
            document.file,
            f"{quoted(stated)} names no source",
            'write source = "..." for all values, or a table [source]',
            key="source",
        )
    given = _given(document.values)
    sources: dict[str, str] = {}
    for key, text in _flat(stated):
        if key not in given:
            raise ProfileError(
                document.file,
                f"this file gives no such value{nearest(key, given)}",
                "name a value of this file, or take the line out",
                key=f"source.{key}",
            )
        if not isinstance(text, str) or not text.isprintable():
            raise ProfileError(
                document.file,
                f"{quoted(text)} is not a line of text",
                'name a page or a paper, or write "ours"',
                key=f"source.{key}",
            )
        sources[key] = text
    return sources


def _flat(stated: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """`up.rate = "..."` and `"up.rate" = "..."` are the same to whoever writes them."""
    for key, value in stated.items():
        if isinstance(value, dict) and key in SECTIONS:
            for inner, text in value.items():
                yield f"{key}.{inner}", text
        else:
            yield key, value


def _given(values: Mapping[str, object]) -> set[str]:
    given = {DEFAULT}
    for section in SECTIONS:
        table = values.get(section)
        for key in table if isinstance(table, dict) else ():
            given |= {key, f"{section}.{key}"}
            if section == "both":
                given |= {f"up.{key}", f"down.{key}"}
    return given
