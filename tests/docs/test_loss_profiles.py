"""The page on profiles: its keys, bounds and names are those of the code, its example is read."""

from __future__ import annotations

import re
import tomllib

from netem.catalogue import Catalogue
from netem.profile import units
from netem.profile.conditions import Answer, Block
from netem.profile.document import Document
from netem.profile.keys import DIRECTION, NAT, UDP
from netem.profile.reading import read_profile
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "loss-profiles.md"
QUANTITIES = {
    "delay": units.DELAY,
    "moment": units.MOMENT,
    "length": units.LENGTH,
    "period": units.EVERY,
    "rate": units.RATE,
    "share": units.SHARE,
    "size": units.SIZE,
}


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    section = section.partition("\n## ")[0]
    found = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2:]]


def test_every_key_is_explained() -> None:
    assert [row[0] for row in rows("Keys of a direction")] == [f"`{key}`" for key in DIRECTION]
    middle = [f"`udp.{key}`" for key in UDP] + [f"`nat.{key}`" for key in NAT]
    assert [row[0] for row in rows("Keys of the middle")] == middle


def test_every_key_is_said_in_the_kernel_s_words_or_not_to_be() -> None:
    said = {
        key for row in rows("On a router of your own") for key in re.findall(r"`([\w.]+)`", row[0])
    }
    assert {"fade", "trace", "mtu", "too_big", "rate", "nat.idle", "udp.block"} <= said
    known = {*DIRECTION, *(f"udp.{key}" for key in UDP), *(f"nat.{key}" for key in NAT), "icmp"}
    assert said <= known


def test_the_bounds_are_the_code_s() -> None:
    table = {row[0]: row[1:] for row in rows("Quantities")}
    assert table == {
        name: [", ".join(kind.units), kind.least, kind.most] for name, kind in QUANTITIES.items()
    }


def test_the_built_in_profiles_are_all_there() -> None:
    catalogue = Catalogue()
    listed = {row[0].strip("`"): row[1] for row in rows("The built-in profiles")}
    assert listed == {name: catalogue.load(name).summary for name in catalogue.names()}


def test_the_example_does_what_the_page_says() -> None:
    (text,) = [block.text for block in blocks(PAGE) if block.language == "toml"]
    base = Catalogue().load("wifi-bad")

    def look_up(name: str, asking: Document) -> Document:
        values = tomllib.loads((ROOT / "netem" / "profiles" / f"{name}.toml").read_text())
        return Document(name=name, file=name, values=values, text_of=asking.text_of)

    document = Document(name="office", file="office", values=tomllib.loads(text), text_of=str)
    profile = read_profile(document, look_up)
    assert profile.up.delay == profile.down.delay == 0.025
    assert profile.down.bottleneck == base.down.bottleneck != profile.up.bottleneck
    assert profile.block == Block(answer=Answer.REJECT, first_packets=20)
    assert profile.sources["up.rate"] == "the provider's contract"
