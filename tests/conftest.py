"""Fixtures that all tests share: certificates, servers in this process and beside it."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bench.process import ServerProcess
from quicserver.app import Server
from tenuto.settings import ServerSettings
from tenuto.telemetry.events import Event
from tenuto.tls import DevCertificates, DevPair
from tests.support.power import skip_without_power

# Started in the background of a script, we inherit that Ctrl-C is ignored, and the programs
# that the tests interrupt would inherit it from us.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # which nohup has ignored
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Every property test draws the same examples in every run, and prints how to draw them. How long
# one takes is the machine's business.
settings.register_profile(
    "house", database=None, deadline=None, derandomize=True, max_examples=100, print_blob=True
)
settings.load_profile("house")

# What clients remember of networks is to be no memory of this machine's.
_STATE = tempfile.mkdtemp(prefix="tenuto-tests-")
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE

StartServer = Callable[..., Awaitable[Server]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_power(items)


@pytest.fixture(scope="session")
def dev_pair(tmp_path_factory: pytest.TempPathFactory) -> DevPair:
    """A development certificate and its CA for the whole run."""
    folder = tmp_path_factory.mktemp("certs") / "dev"
    return DevCertificates(folder).ensure(datetime.now(UTC))


@pytest.fixture(scope="session")
def ca_file(dev_pair: DevPair) -> Path:
    return dev_pair.ca.chain_path


@pytest.fixture
def events() -> list[Event]:
    """What the servers of this test told their log."""
    return []


@pytest.fixture
async def start_server(dev_pair: DevPair, events: list[Event]) -> AsyncIterator[StartServer]:
    """Start servers in this process on free ports; keyword arguments are settings."""
    running: list[Server] = []

    async def start(**settings: Any) -> Server:
        settings.setdefault("port", 0)
        settings.setdefault("test_sources", True)
        settings.setdefault("certificates_folder", dev_pair.ca.chain_path.parent)
        settings.setdefault("grace", 0.2)
        server = Server(ServerSettings(**settings), on_event=events.append)
        await server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        await server.stop()


@pytest.fixture
def server_process(dev_pair: DevPair) -> Iterator[Callable[..., ServerProcess]]:
    """Start `tenuto serve` as a process of its own; arguments are its options."""
    running: list[ServerProcess] = []

    def start(*options: str) -> ServerProcess:
        process = ServerProcess(dev_pair.ca.chain_path.parent, *options)
        running.append(process)
        return process

    yield start
    for process in running:
        process.stop()
