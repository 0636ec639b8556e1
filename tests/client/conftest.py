from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tenuto.cli.main import cli
from tenuto.client import Transport, Trust
from tests.client.authority import Authority, Pair
from tests.client.opener import Opener
from tests.client.peer import Peer, Script, serving
from tests.client.shell import Run, Served


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def pair(authority: Authority) -> Pair:
    return authority.issue("localhost", "localhost", "127.0.0.1", "::1")


@pytest.fixture(scope="session")
def trust(authority: Authority) -> Trust:
    return Trust(cafile=authority.ca)


@pytest.fixture(params=["quic", "tcp"])
def transport(request: pytest.FixtureRequest) -> Transport:
    chosen: Transport = request.param
    return chosen


@pytest.fixture
def opened(pair: Pair, trust: Trust, transport: Transport) -> Opener:
    return Opener(pair, trust, transport)


@pytest.fixture
def served(pair: Pair) -> Served:
    """A peer on a loop of its own, in a thread."""

    @contextmanager
    def serve(script: Script) -> Iterator[Peer]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        peer = serving(pair, script)
        try:
            yield asyncio.run_coroutine_threadsafe(peer.__aenter__(), loop).result(5)
        finally:
            asyncio.run_coroutine_threadsafe(peer.__aexit__(None, None, None), loop).result(5)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    return serve


@pytest.fixture
def run(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TENUTO_CA", str(authority.ca))

    def invoke(*arguments: str | Path, **options: Any) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], **options)

    return invoke
