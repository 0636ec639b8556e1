"""What clients remember of networks: which one this is, and where QUIC failed."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenuto.client import PathStore, pathstore
from tenuto.client.identity import network_identity
from tenuto.client.paths import Paths
from tenuto.client.pathstore import (
    MAX_NETWORKS,
    MAX_ORIGINS,
    MAX_STORE_SIZE,
    MOST_THREADS,
    READ_WITHIN,
    default_store,
)
from tenuto.client.target import Address
from tenuto.policy import CoolDown

ROOT = Path(__file__).parents[2]

HERE = [Address(socket.AF_INET, ("127.0.0.1", 443)), Address(socket.AF_INET6, ("::1", 443, 0, 0))]
AWAY = [Address(socket.AF_INET, ("192.0.2.7", 443))]

ROUTES = """\
Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
wlan0 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0
eth0 00000000 FE01A8C0 0003 0 0 100 00000000 0 0 0
eth0 0001A8C0 00000000 0001 0 0 100 00FFFFFF 0 0 0
"""
ARP = """\
IP address HW type Flags HW address Mask Device
192.168.1.254 0x1 0x2 02:00:00:00:00:05 * wlan9
192.168.1.254 0x1 0x2 02:00:00:00:00:07 * eth0
"""
SIX = (
    "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 "
    "00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
    "fe800000000000000000000000000001 00000400 00000003 00000000 00000003 eth0\n"
)


def proc(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


# Which network this is


def test_this_machine_is_no_network() -> None:
    assert network_identity(HERE) is None
    assert network_identity([]) is None


def test_the_gateway_that_is_used_with_its_hardware_is_the_network(tmp_path: Path) -> None:
    where = proc(tmp_path, route=ROUTES, arp=ARP, ipv6_route=SIX)
    assert network_identity(AWAY, where) == "192.168.1.254 02:00:00:00:00:07"
    # The same addresses at another place: another gateway answers for them.
    proc(tmp_path, arp=ARP.replace("00:07", "00:08"))
    assert network_identity(AWAY, where) == "192.168.1.254 02:00:00:00:00:08"
    proc(tmp_path, arp="nonsense")
    assert network_identity(AWAY, where) == "192.168.1.254"


def test_without_ipv4_it_is_the_gateway_of_ipv6(tmp_path: Path) -> None:
    where = proc(tmp_path, route=ROUTES.splitlines()[0], ipv6_route=SIX)
    assert network_identity(AWAY, where) == "fe800000000000000000000000000001"


@pytest.mark.parametrize("text", ["", "a\nb\n", "x y z\n" * 3, "\xff"])
def test_without_a_gateway_it_is_the_class_of_our_address(tmp_path: Path, text: str) -> None:
    where = proc(tmp_path, route=text, ipv6_route=text)
    here = [Address(socket.AF_INET, ("127.0.0.1", 443)), *AWAY]
    assert network_identity(here, where) == "127.0.0.0/24"
    assert network_identity(here, tmp_path / "absent") == "127.0.0.0/24"


# The store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "paths.json"


async def test_what_one_process_learns_another_knows(file: Path) -> None:
    one, other = PathStore(file), PathStore(file)
    one.put("home", "https://a", CoolDown(1, 10.0))
    one.sync()
    other.put("home", "https://b", CoolDown(2, 20.0))
    other.sync()
    await one.refresh()
    assert one.get("home", "https://b") == CoolDown(2, 20.0)
    assert other.get("home", "https://a") == CoolDown(1, 10.0)
    assert other.get("café", "https://a") == CoolDown()
    one.put("home", "https://a", CoolDown())
    one.sync()
    await other.refresh()
    assert other.get("home", "https://a") == CoolDown()


def test_its_file_is_its_owners_alone(file: Path) -> None:
    learn(PathStore(file), "home")
    assert list(file.parent.iterdir()) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def settled() -> None:
    """No thread is at a file any more."""
    for thread in list(pathstore._threads):
        thread.join(10)
    assert not pathstore._threads


def learn(store: PathStore, network: str, failures: int = 1) -> None:
    store.put(network, "https://a", CoolDown(failures, 10.0))
    store.sync()


def test_the_name_of_a_network_is_any_text(file: Path) -> None:
    learn(PathStore(file), os.fsdecode(b"caf\xe9"))
    store = PathStore(file)
    store.sync()
    assert store.get(os.fsdecode(b"caf\xe9"), "https://a") == CoolDown(1, 10.0)
    assert store.get("caf", "https://a") == CoolDown()


def test_the_file_does_not_tell_where_its_owner_has_been(file: Path) -> None:
    learn(PathStore(file), "192.168.1.254 02:00:00:00:00:07")
    text = file.read_text()
    assert "192.168" not in text
    assert "02:00" not in text
    before = text
    file.unlink()
    learn(PathStore(file), "192.168.1.254 02:00:00:00:00:07")
    assert file.read_text() != before  # the salt is another


def test_the_oldest_networks_and_servers_make_room(file: Path) -> None:
    store = PathStore(file)
    for number in range(MAX_ORIGINS + 1):
        store.put("home", f"https://{number}", CoolDown(1, 10.0))
    assert store.get("home", "https://0") == CoolDown()
    assert store.get("home", "https://1") == CoolDown(1, 10.0)
    for number in range(MAX_NETWORKS):
        store.put(f"network {number}", "https://a", CoolDown(1, 10.0))
    store.sync()
    assert store.get("home", "https://1") == CoolDown()
    assert store.get("network 0", "https://a") == CoolDown(1, 10.0)
    assert len(json.loads(file.read_text())["networks"]) == MAX_NETWORKS
    assert file.stat().st_size < MAX_STORE_SIZE


SALT = "0123456789abcdef" * 2


def ours(entry: str, salt: str = SALT) -> str:
    return f'{{"version": 1, "salt": "{salt}", "networks": {{"n": {{"o": {entry}}}}}}}'


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"\x00\xff{"),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text("[" * 100_000),
        lambda file: file.write_text('{"version": 2, "salt": "%s", "networks": {}}'),
        lambda file: file.write_text('{"version": 1, "salt": 3, "networks": {}}'),
        lambda file: file.write_text(ours("[1, 1]", salt="\\ud800" * 32)),
        lambda file: file.write_text(ours("[1, 1]", salt=SALT * 2)),
        lambda file: file.write_text(ours("1")),
        lambda file: file.write_text(ours("[1, NaN]")),
        lambda file: file.write_text(ours("[1, 1" + "0" * 400 + "]")),
        lambda file: file.write_text(ours("[1" + "0" * 5000 + ", 1]")),
        lambda file: file.write_text(" " * (MAX_STORE_SIZE + 1) + "{}"),
        lambda file: os.truncate(file, 100_000_000),
        lambda file: (file.unlink(), file.mkdir()),
        pipe,
        lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
        lambda file: (file.unlink(), file.symlink_to(file)),
    ],
)
def test_a_file_that_is_broken_is_no_file(file: Path, harm: Callable[[Path], object]) -> None:
    learn(PathStore(file), "home")
    harm(file)
    store = PathStore(file)
    store.sync()
    assert store.get("home", "https://a") == CoolDown()
    learn(store, "home", 2)
    assert store.get("home", "https://a") == CoolDown(2, 10.0)
    again = PathStore(file)
    again.sync()
    assert file.is_dir() or again.get("home", "https://a") == CoolDown(2, 10.0)


def test_a_folder_that_cannot_be_written_is_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = PathStore(tmp_path / "file" / "paths.json")
    learn(store, "home")
    assert store.get("home", "https://a") == CoolDown(1, 10.0)


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """As a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_cannot_be_written_now_is_kept_and_written_later(file: Path) -> None:
    store = PathStore(file)
    learn(store, "home")
    before = file.read_text()
    with no_file_larger_than(10):
        for number in range(1000):
            store.put(f"café {number}", "https://a", CoolDown(1, 10.0))
        settled()
        store.sync()
        assert store.get("café 999", "https://a") == CoolDown(1, 10.0)
        assert file.read_text() == before
        assert list(file.parent.iterdir()) == [file]
        assert len(store._unwritten) == MAX_NETWORKS
    store.sync()
    other = PathStore(file)
    other.sync()
    assert other.get("café 999", "https://a") == CoolDown(1, 10.0)


def test_what_a_killed_writer_left_is_cleared(file: Path) -> None:
    learn(PathStore(file), "home")
    old, new = (file.with_name(f".paths.json.{name}") for name in ("old", "new"))
    for left in (old, new):
        left.write_text("half")
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    learn(PathStore(file), "home")
    assert sorted(file.parent.iterdir()) == [new, file]


def test_twenty_that_write_at_once_leave_a_whole_file(file: Path) -> None:
    stores = [PathStore(file) for _ in range(20)]

    def write(store: PathStore) -> None:
        for number in range(20):
            learn(store, f"network {number}")

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.sync()
        assert store.get("network 19", "https://a") == CoolDown(1, 10.0)
    assert list(file.parent.iterdir()) == [file]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that answers when it is told to."""
    go = threading.Event()

    def read(path: Path) -> None:
        go.wait(10)

    monkeypatch.setattr(pathstore, "_read", read)
    monkeypatch.setattr(pathstore, "_write", lambda *_: True)
    yield go
    go.set()
    settled()


async def test_nobody_waits_for_a_disk_that_hangs(file: Path, hanging: threading.Event) -> None:
    loop, store = asyncio.get_running_loop(), PathStore(file)
    began = loop.time()
    await asyncio.gather(*(store.refresh() for _ in range(20)))
    assert READ_WITHIN <= loop.time() - began < READ_WITHIN + 0.2
    began = loop.time()
    for _ in range(20):
        await store.refresh()
        store.put("home", "https://a", CoolDown(1, 10.0))
        assert store.get("home", "https://a") == CoolDown(1, 10.0)
    assert loop.time() - began < READ_WITHIN
    assert len(pathstore._threads) == 1
    assert not store._waiting
    hanging.set()
    settled()
    assert not store._unwritten


async def test_so_many_disks_may_hang_and_no_more(tmp_path: Path, hanging: threading.Event) -> None:
    stores = [PathStore(tmp_path / str(number)) for number in range(MOST_THREADS + 10)]
    for store in stores:
        store.put("home", "https://a", CoolDown(1, 10.0))
    assert len(pathstore._threads) == MOST_THREADS
    assert stores[-1].get("home", "https://a") == CoolDown(1, 10.0)
    await stores[-1].refresh()  # at once, and without
    hanging.set()
    settled()
    await stores[-1].refresh()
    assert not stores[-1]._unwritten


HOMELESS = """
import os, sys
from tenuto.client.pathstore import default_store
from tenuto.policy import CoolDown
default_store()
os.chdir(sys.argv[1])
for name in [name for name in os.environ if name == "HOME" or name.startswith("XDG_")]:
    del os.environ[name]
os.setgid(43210)
os.setuid(43210)
store = default_store()
store.put("home", "https://a", CoolDown(1, 10.0))
store.sync()
print(store.path, os.listdir("."))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="changes its user")
def test_a_user_without_a_home_keeps_it_in_memory(tmp_path: Path) -> None:
    """Such as in a container; "~" would be a folder of that name."""
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("None []\n", "")


def test_the_default_is_the_users_own_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = default_store()
    assert default_store() is store
    learn(store, "home")
    assert [*map(str, tmp_path.rglob("*.json"))] == [os.path.join(tmp_path, "tenuto/paths.json")]


# The view


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


async def test_quic_is_first_until_it_fails_and_again_when_it_may() -> None:
    networks = iter(["home", "café", "home"])
    clock = Clock()
    store = PathStore(identify=lambda addresses: next(networks), clock=clock)
    paths = Paths(store, "https://a")
    await paths.arrive(AWAY)
    await paths.arrive(AWAY)
    assert paths.order() == ("quic", "tcp")
    paths.failed("tcp")
    assert paths.order() == ("quic", "tcp")
    paths.failed("quic")
    assert paths.order() == ("tcp", "quic")
    assert paths.reprobe_in() == 300
    paths.network_changed()
    assert paths.order() == ("quic", "tcp")
    paths.network_changed()
    clock.now += 299
    assert paths.reprobe_in() == 1
    clock.now += 1
    assert paths.order() == ("quic", "tcp")
    paths.failed("quic")
    assert paths.reprobe_in() == 600
    paths.worked("tcp")
    assert paths.reprobe_in() == 600
    paths.worked("quic")
    assert paths.reprobe_in() == 0
    paths.failed("quic")
    assert paths.reprobe_in() == 300


async def test_of_this_machine_nothing_is_kept() -> None:
    store = PathStore()
    paths = Paths(store, "https://localhost")
    await paths.arrive(HERE)
    paths.failed("quic")
    assert paths.reprobe_in() == pytest.approx(300, abs=1)
    again = Paths(store, "https://localhost")
    await again.arrive(HERE)
    assert again.order() == ("quic", "tcp")
