"""The distributions of a link are those of the tables that come with tc."""

from pathlib import Path

import pytest

from netem.link.delay import deviation
from netem.profile import Distribution

TABLES = [path for place in ("tc", "*/tc") for path in Path("/usr/lib").glob(f"{place}/*.dist")]
SCALE = 8192
"""What stands for one jitter in a table (netem(8), `NETEM_DIST_SCALE` of the kernel)."""


@pytest.mark.parametrize("distribution", [Distribution.NORMAL, Distribution.PARETO])
def test_a_table_of_tc_has_the_quantiles_of_a_link(distribution: Distribution) -> None:
    path = next((path for path in TABLES if path.stem == distribution), None)
    if path is None:
        pytest.skip("no tables of tc here")
    lines = [line for line in path.read_text("ascii").splitlines() if not line.startswith("#")]
    table = sorted(int(word) / SCALE for line in lines for word in line.split())
    for percent in (1, 10, 25, 50, 75, 90, 95, 98):
        told = table[len(table) * percent // 100]
        assert told == pytest.approx(deviation(distribution, percent / 100), abs=0.02), percent
