from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.netem.outer import Outer, outer_network


@pytest.fixture
def outer() -> Iterator[Outer]:
    with outer_network() as network:
        yield network
