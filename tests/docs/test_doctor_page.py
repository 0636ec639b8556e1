"""docs/doctor.md names every constant of the diagnosis, and every finding."""

from __future__ import annotations

import pytest

from tenuto.doctor.diagnosis.findings import Code
from tests.docs.pages import ROOT, table
from tests.docs.test_server_behaviour import constants, module, ticked

PAGE = ROOT / "docs" / "doctor.md"
ROWS = table(PAGE, "constant")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["constant"].strip("`"))
def test_constants_have_the_values_of_the_code(row: dict[str, str]) -> None:
    (name,), (path,) = ticked(row["constant"]), ticked(row["file"])
    assert getattr(module(path), name) == float(row["value"].replace(",", ""))
    assert row["what"]


def test_every_constant_is_listed() -> None:
    listed = {(ticked(row["file"])[0], ticked(row["constant"])[0]) for row in ROWS}
    assert listed == {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "tenuto" / "doctor" / "diagnosis").glob("*.py"))
        for name in constants(path)
    }


def test_every_finding_is_listed_with_its_meaning() -> None:
    rows = table(PAGE, "finding")
    assert sorted(ticked(row["finding"])[0] for row in rows) == sorted(map(str, Code))
    assert all(row["what it means for Tenuto"] for row in rows)
