"""docs/playout.md names every constant of the package, with its value."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT, table
from tests.docs.test_server_behaviour import constants, module, ticked

ROWS = table(ROOT / "docs" / "playout.md", "constant")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["constant"].strip("`"))
def test_constants_have_the_values_of_the_code(row: dict[str, str]) -> None:
    (name,), (path,) = ticked(row["constant"]), ticked(row["file"])
    assert getattr(module(path), name) == float(row["value"].replace(",", ""))
    assert row["what"]


def test_every_constant_is_listed() -> None:
    listed = {(ticked(row["file"])[0], ticked(row["constant"])[0]) for row in ROWS}
    assert listed == {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "tenuto" / "playout").glob("*.py"))
        for name in constants(path)
    }
