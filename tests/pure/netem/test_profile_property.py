"""Whatever a profile holds, it is read or refused by `ProfileError`, and the values are sane."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from netem.profile.conditions import Conditions, GilbertElliott, Jitter, Way
from netem.profile.document import Document, parse_document
from netem.profile.errors import ProfileError
from netem.profile.keys import DIRECTION, NAT, TOP, UDP
from netem.profile.reading import read_profile
from netem.profile.units import BadValueError

WORDS = (
    "30ms", "0s", "60s", "5%", "0%", "100%", "50%", "9mbit", "1kbit", "3kB", "none", "normal",
    "pareto", "silent", "icmp", "drop", "reject", "-1ms", "nan%", "1e3ms", "", "4g", "x",
)  # fmt: skip
INNER = ("p", "r", "h", "k", "every", "length", "start", "loss", "default", "delay", "1-h")

scalars = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates(),
)
small = st.dictionaries(st.sampled_from(INNER), scalars, max_size=4)
values = st.one_of(scalars, small, st.lists(st.one_of(scalars, small), max_size=3))
tables = st.dictionaries(st.sampled_from((*DIRECTION, *UDP, *NAT, "x")), values, max_size=6)
documents = st.dictionaries(
    st.sampled_from((*TOP, "source", "x")), st.one_of(tables, values), max_size=6
)
plausible = st.fixed_dictionaries(
    {},
    optional={
        "both": st.fixed_dictionaries(
            {},
            optional={
                "delay": st.sampled_from(("30ms", "0s", "none")),
                "jitter": st.sampled_from(("5ms", "0s", "none")),
                "loss": st.sampled_from(("5%", "0%", "90%", "none")),
                "burst": st.sampled_from((1, 3, 2.5)),
                "gemodel": st.fixed_dictionaries(
                    {"p": st.sampled_from(("1%", "0%")), "r": st.sampled_from(("9%", "0%"))}
                ),
                "rate": st.sampled_from(("9mbit", "none")),
                "trace": st.sampled_from(("a.trace", "b.trace", "none")),
                "reorder": st.sampled_from(("1%", "0%")),
            },
        ),
        "extends": st.sampled_from(("a", "mine")),
    },
)


def text_of(name: str) -> str:
    if name == "a.trace":
        return "1\n2\n"
    raise BadValueError("no such trace", "none")


def sane(conditions: Conditions) -> bool:
    shares = [conditions.reorder, conditions.duplicate, conditions.corrupt]
    if isinstance(conditions.loss, GilbertElliott):
        loss = conditions.loss
        shares += [loss.to_bad, loss.to_good, loss.loss_bad, loss.loss_good]
    jitter = conditions.jitter or Jitter(spread=0.0)
    return (
        all(0.0 <= share <= 1.0 for share in shares)
        and math.isfinite(conditions.delay)
        and 0.0 <= conditions.delay <= 60.0
        and 0.0 <= jitter.spread <= 60.0
    )


def read(values: dict[str, Any], base: dict[str, Any]) -> None:
    def document(name: str, held: dict[str, Any]) -> Document:
        return Document(name=name, file=f"{name}.toml", values=held, text_of=text_of)

    def look_up(name: str, asking: Document) -> Document:
        if name == "mine":
            return document("mine", values)
        return document("base", base)

    try:
        profile = read_profile(document("mine", values), look_up)
    except ProfileError as error:
        assert str(error).isprintable()
        return
    assert all(sane(profile.conditions(way)) for way in Way)
    assert all(isinstance(source, str) for source in profile.sources.values())


@given(values=documents, base=documents)
def test_any_values(values: dict[str, Any], base: dict[str, Any]) -> None:
    read(values, base)


@given(values=plausible, base=plausible)
def test_values_that_are_nearly_right(values: dict[str, Any], base: dict[str, Any]) -> None:
    read(values, base)


@given(text=st.text(max_size=200))
def test_any_text(text: str) -> None:
    try:
        parse_document(text, name="mine", file="mine.toml", text_of=text_of)
    except ProfileError as error:
        assert str(error).isprintable()
