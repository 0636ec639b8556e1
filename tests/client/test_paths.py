"""What clients remember of networks: which one this is, and where QUIC failed."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.client import PathStore
from tenuto.client.identity import network_identity
from tenuto.client.paths import Paths
from tenuto.client.pathstore import MAX_NETWORKS, MAX_ORIGINS, MAX_STORE_SIZE, default_store
from tenuto.client.target import Address
from tenuto.policy import CoolDown

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


def test_what_one_process_learns_another_knows(file: Path) -> None:
    one, other = PathStore(file), PathStore(file)
    one.put("home", "https://a", CoolDown(1, 10.0))
    other.put("home", "https://b", CoolDown(2, 20.0))
    assert one.get("home", "https://b") == CoolDown(2, 20.0)
    assert other.get("home", "https://a") == CoolDown(1, 10.0)
    assert other.get("café", "https://a") == CoolDown()
    one.put("home", "https://a", CoolDown())
    assert other.get("home", "https://a") == CoolDown()
    assert list(file.parent.iterdir()) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_does_not_tell_where_its_owner_has_been(file: Path) -> None:
    PathStore(file).put("192.168.1.254 02:00:00:00:00:07", "https://a", CoolDown(1, 10.0))
    text = file.read_text()
    assert "192.168" not in text
    assert "02:00" not in text
    before = text
    file.unlink()
    PathStore(file).put("192.168.1.254 02:00:00:00:00:07", "https://a", CoolDown(1, 10.0))
    assert file.read_text() != before  # the salt is another


def test_the_oldest_networks_and_servers_make_room(file: Path) -> None:
    store = PathStore(file)
    for number in range(MAX_ORIGINS + 1):
        store.put("home", f"https://{number}", CoolDown(1, 10.0))
    assert store.get("home", "https://0") == CoolDown()
    assert store.get("home", "https://1") == CoolDown(1, 10.0)
    for number in range(MAX_NETWORKS):
        store.put(f"network {number}", "https://a", CoolDown(1, 10.0))
    assert store.get("home", "https://1") == CoolDown()
    assert store.get("network 0", "https://a") == CoolDown(1, 10.0)
    assert len(json.loads(file.read_text())["networks"]) == MAX_NETWORKS
    assert file.stat().st_size < MAX_STORE_SIZE


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"\x00\xff{"),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text("[" * 100_000),
        lambda file: file.write_text('{"version": 2, "salt": "x", "networks": {}}'),
        lambda file: file.write_text('{"version": 1, "salt": 3, "networks": {}}'),
        lambda file: file.write_text('{"version": 1, "salt": "x", "networks": {"n": {"o": 1}}}'),
        lambda file: file.write_text(
            '{"version": 1, "salt": "x", "networks": {"n": {"o": [1, NaN]}}}'
        ),
        lambda file: file.write_text(" " * (MAX_STORE_SIZE + 1) + "{}"),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
def test_a_file_that_is_broken_is_no_file(file: Path, harm: Callable[[Path], object]) -> None:
    PathStore(file).put("home", "https://a", CoolDown(1, 10.0))
    harm(file)
    store = PathStore(file)
    assert store.get("home", "https://a") == CoolDown()
    store.put("home", "https://a", CoolDown(2, 20.0))
    assert store.get("home", "https://a") == CoolDown(2, 20.0)


def test_a_folder_that_cannot_be_written_is_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = PathStore(tmp_path / "file" / "paths.json")
    store.put("home", "https://a", CoolDown(1, 10.0))
    assert store.get("home", "https://a") == CoolDown(1, 10.0)


def test_the_default_is_the_users_own_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    default_store().put("home", "https://a", CoolDown(1, 10.0))
    assert [*map(str, tmp_path.rglob("*.json"))] == [os.path.join(tmp_path, "tenuto/paths.json")]


# The view


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def test_quic_is_first_until_it_fails_and_again_when_it_may() -> None:
    networks = iter(["home", "café", "home"])
    clock = Clock()
    store = PathStore(identify=lambda addresses: next(networks), clock=clock)
    paths = Paths(store, "https://a")
    paths.arrive(AWAY)
    paths.arrive(AWAY)
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


def test_of_this_machine_nothing_is_kept() -> None:
    store = PathStore()
    paths = Paths(store, "https://localhost")
    paths.arrive(HERE)
    paths.failed("quic")
    assert paths.reprobe_in() == pytest.approx(300, abs=1)
    again = Paths(store, "https://localhost")
    again.arrive(HERE)
    assert again.order() == ("quic", "tcp")
