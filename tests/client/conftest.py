from __future__ import annotations

import pytest

from tenuto.client import Trust
from tests.client.authority import Authority, Pair


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def pair(authority: Authority) -> Pair:
    return authority.issue("localhost", "localhost", "127.0.0.1", "::1")


@pytest.fixture(scope="session")
def trust(authority: Authority) -> Trust:
    return Trust(cafile=authority.ca)
