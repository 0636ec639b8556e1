"""What a profile says in the end, key by key: its own tables laid over those it extends.

`[both]` speaks for both directions and `[up]` and `[down]` over it. A key that says the same thing
in another way (`trace` for `rate`) takes the place of the inherited one, and `"none"` takes an
inherited value away, with what depends on it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from netem.profile.document import Document
from netem.profile.errors import ProfileError
from netem.profile.keys import NEEDS, RIVALS, SECTIONS, TOP, nearest
from netem.profile.sources import DEFAULT, read_sources
from netem.profile.units import quoted

__all__ = ["Layer", "Layers", "Said", "lay"]

DEEPEST: Final = 16
"""Profiles in a chain of `extends`."""
NONE: Final = "none"


class Said(NamedTuple):
    """A value, and who said it where, for messages and for `show`."""

    value: object
    document: Document
    key: str
    source: str | None

    def error(self, what: str, remedy: str) -> ProfileError:
        return ProfileError(self.document.file, what, remedy, key=self.key)


Layer = dict[str, Said]


@dataclass(slots=True, kw_only=True)
class Layers:
    summary: str = ""
    up: Layer = field(default_factory=dict)
    down: Layer = field(default_factory=dict)
    udp: Layer = field(default_factory=dict)
    nat: Layer = field(default_factory=dict)


Lookup = Callable[[str, Document], Document]
"""The document of a name, and who asks for it. Raises `ProfileError`."""


def lay(document: Document, lookup: Lookup) -> Layers:
    """All that `document` says and inherits. Raises `ProfileError`."""
    layers = Layers()
    for each in reversed(_chain(document, lookup)):
        _check_top(each)
        sources = read_sources(each)
        both, up, down, udp, nat = (_section(each, name, sources) for name in SECTIONS)
        layers = Layers(
            summary=_summary(each) or layers.summary,
            up=_over(_over(layers.up, _aimed(both, "up", sources)), up),
            down=_over(_over(layers.down, _aimed(both, "down", sources)), down),
            udp=_over(layers.udp, udp),
            nat=_over(layers.nat, nat),
        )
    return layers


def _chain(document: Document, lookup: Lookup) -> list[Document]:
    chain = [document]
    while "extends" in chain[-1].values:
        asking = chain[-1]
        name = asking.values["extends"]
        if not isinstance(name, str):
            raise ProfileError(
                asking.file,
                f"{quoted(name)} is not the name of a profile",
                'write one, as in extends = "4g"',
                key="extends",
            )
        found = lookup(name, asking)
        files = [each.file for each in chain]
        if found.file in files:
            circle = " -> ".join([*(each.name for each in chain[files.index(found.file) :]), name])
            raise ProfileError(
                asking.file,
                f"extends itself in a circle: {circle}",
                "let one of them extend nothing",
                key="extends",
            )
        if len(chain) == DEEPEST:
            raise ProfileError(
                document.file,
                f"extends more than {DEEPEST} profiles, one over the other",
                "say the values here instead",
                key="extends",
            )
        chain.append(found)
    return chain


def _check_top(document: Document) -> None:
    for key in document.values:
        if key in TOP:
            continue
        places = [section for section, keys in SECTIONS.items() if key in keys]
        if places:
            tables = " or ".join(f"[{section}]" for section in places)
            raise ProfileError(
                document.file, "it stands outside of a table", f"put it below {tables}", key=key
            )
        raise ProfileError(
            document.file,
            f"there is no such key{nearest(key, TOP)}",
            f"the tables are {', '.join(f'[{name}]' for name in SECTIONS)} and [source]",
            key=key,
        )


def _summary(document: Document) -> str:
    summary = document.values.get("summary", "")
    if not isinstance(summary, str) or not summary.isprintable():
        raise ProfileError(
            document.file,
            f"{quoted(summary)} is not a line of text",
            'write a line, as in summary = "A busy cafe"',
            key="summary",
        )
    return summary


def _section(document: Document, section: str, sources: Mapping[str, str]) -> Layer:
    table = document.values.get(section, {})
    if not isinstance(table, dict):
        raise ProfileError(
            document.file,
            f"{quoted(table)} is not a table",
            f"write [{section}] on a line, and its keys below",
            key=section,
        )
    known = SECTIONS[section]
    layer: Layer = {}
    for key, value in table.items():
        if key not in known:
            raise ProfileError(
                document.file,
                f"there is no such key{nearest(key, known)}",
                f"[{section}] takes {', '.join(known)}",
                key=f"{section}.{key}",
            )
        place = f"{section}.{key}"
        source = sources.get(place) or sources.get(key) or sources.get(DEFAULT)
        layer[key] = Said(value, document, place, source)
    for key, said in layer.items():
        for rival in RIVALS.get(key, ()):
            if rival in layer and NONE not in (said.value, layer[rival].value):
                raise said.error(f"{key} and {rival} exclude each other", "keep one of them")
    return layer


def _aimed(both: Layer, way: str, sources: Mapping[str, str]) -> Layer:
    """`[both]` in one direction, where `[source]` may tell the directions apart."""
    return {
        key: said._replace(source=sources.get(f"{way}.{key}") or said.source)
        for key, said in both.items()
    }


def _over(below: Layer, above: Layer) -> Layer:
    """`above` laid over `below`."""
    layer = dict(below)
    for key, said in above.items():
        if said.value != NONE:
            for rival in RIVALS.get(key, ()):
                layer.pop(rival, None)
            layer[key] = said
    for key, said in above.items():
        if said.value == NONE:
            layer.pop(key, None)
            for other, needed in NEEDS.items():
                if key in needed and other not in above and not any(n in layer for n in needed):
                    layer.pop(other, None)
    return layer
