from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from netem.drivers.linkbed import LinkBed
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.profile import Profile
from tests.netem.outer import Outer, outer_network

Make = Callable[..., LinkBed]


@pytest.fixture
def outer() -> Iterator[Outer]:
    with outer_network() as network:
        yield network


@pytest.fixture(params=[TunBed, VethBed], ids=["tun", "veth"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Beds of either kind, until the end of the test."""
    with contextlib.ExitStack() as beds:

        def make(profile: Profile, seed: int = 1, **given: object) -> LinkBed:
            bed: LinkBed = beds.enter_context(request.param(profile, seed, **given))
            return bed

        yield make
