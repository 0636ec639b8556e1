"""What counts as another network: fakes for the looks, real netlink in a namespace of its own."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenuto.client import changes
from tenuto.client.changes import NetworkChanges, Road, look

ROOT = Path(__file__).parents[2]


class Eyes:
    """Sees what it is told to."""

    def __init__(self, *road: str) -> None:
        self.road: Road = road
        self.looks = 0

    def __call__(self, hosts: Sequence[str]) -> Road:
        self.looks += 1
        return self.road


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "POLL_INTERVAL", 0.01)
    monkeypatch.setattr(changes, "DEBOUNCE", 0.01)


@pytest.mark.usefixtures("fast")
async def test_only_another_way_out_is_a_change() -> None:
    eyes, calls = Eyes("wlan from 10.0.0.2"), [0]

    def count() -> None:
        calls[0] += 1

    watch = NetworkChanges(count, seen=eyes, netlink=False)
    watch.start()
    await asyncio.sleep(0.05)
    assert eyes.looks > 2
    assert calls == [0]
    eyes.road = ("cell from 100.64.0.9",)
    await asyncio.sleep(0.05)
    assert calls == [1]
    # The last way goes: nothing to be done. It comes back, the same: everything to be done.
    eyes.road = ()
    await asyncio.sleep(0.05)
    assert calls == [1]
    eyes.road = ("cell from 100.64.0.9",)
    await asyncio.sleep(0.05)
    assert calls == [2]
    watch.close()
    looks = eyes.looks
    await asyncio.sleep(0.05)
    assert eyes.looks == looks


@pytest.mark.usefixtures("fast")
async def test_it_survives_eyes_and_callers_that_fail() -> None:
    eyes = Eyes("a")
    fails = [True]

    def look_badly(hosts: Sequence[str]) -> Road:
        if fails[0]:
            raise OSError(errno.EMFILE, "no descriptor")
        return eyes(hosts)

    calls = [0]

    def call_badly() -> None:
        calls[0] += 1
        raise RuntimeError("the caller's")

    watch = NetworkChanges(call_badly, seen=look_badly, netlink=False)
    watch.start()
    await asyncio.sleep(0.03)
    fails[0] = False
    await asyncio.sleep(0.05)
    assert calls == [1]
    eyes.road = ("b",)
    await asyncio.sleep(0.05)
    assert calls == [2]
    watch.close()


class DeafSocket:
    """A netlink socket that fails at a given step."""

    def __init__(self, step: str) -> None:
        self._step = step
        self.closed = False
        self._real, self._other = socket.socketpair()

    def setblocking(self, flag: bool) -> None:
        self._real.setblocking(flag)

    def bind(self, address: object) -> None:
        if self._step == "bind":
            raise PermissionError(errno.EPERM, "not here")

    def fileno(self) -> int:
        return self._real.fileno()

    def recv(self, size: int) -> bytes:
        if self._step == "recv":
            raise OSError(errno.EBADF, "gone")
        self._real.recv(size)
        raise OSError(errno.ENOBUFS, "ran over") if self._step == "overflow" else BlockingIOError

    def close(self) -> None:
        self.closed = True
        self._real.close()
        self._other.close()

    def speak(self) -> None:
        self._other.send(b"x")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("step", ["bind", "recv", "overflow", "none"])
async def test_whatever_netlink_refuses_changes_are_seen(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = DeafSocket(step)
    monkeypatch.setattr("tenuto.client.changes.socket.socket", lambda *_: made)
    monkeypatch.setattr("tenuto.client.changes.socket.AF_NETLINK", 16, raising=False)
    eyes, calls = Eyes("a"), [0]

    def count() -> None:
        calls[0] += 1

    watch = NetworkChanges(count, seen=eyes)
    watch.start()
    eyes.road = ("b",)
    if step != "bind":
        made.speak()
    await asyncio.sleep(0.1)
    assert calls == [1]
    assert made.closed == (step in ("bind", "recv"))
    watch.close()
    assert made.closed


async def test_a_loop_without_readers_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    def refuse(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(loop, "add_reader", refuse)
    monkeypatch.setattr(changes, "POLL_INTERVAL", 0.01)
    eyes = Eyes("a")
    watch = NetworkChanges(lambda: None, seen=eyes)
    watch.start()
    await asyncio.sleep(0.05)
    assert eyes.looks > 2
    watch.close()


def test_the_way_to_this_host_knows_no_default_routes() -> None:
    assert look(["127.0.0.1"]) == ("127.0.0.1 from 127.0.0.1",)
    assert look(["no address"]) == look(changes._ANYWHERE)


def test_default_routes_are_read_from_what_the_kernel_lists(tmp_path: Path) -> None:
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    (tmp_path / "route").write_text(
        head
        + "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
        + "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        + "eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
    )
    nowhere = "00000000000000000000000000000000"
    gateway = "fe800000000000000000000000000001"
    (tmp_path / "ipv6_route").write_text(
        f"{nowhere} 00 {nowhere} 00 {gateway} 00000400 00000001 00000000 00450003     eth0\n"
        f"{nowhere} 00 {nowhere} 00 {nowhere} ffffffff 00000001 00000000 00200200       lo\n"
    )
    assert changes._default_routes(tmp_path) == ["via 0100000A on eth0", f"via {gateway} on eth0"]
    assert changes._default_routes(tmp_path / "nowhere") == []


SCRIPT = textwrap.dedent("""
    import asyncio, os, subprocess
    from tenuto.client.changes import NetworkChanges

    def ip(*lines):
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)

    async def main():
        said = []
        watch = NetworkChanges(lambda: said.append(1))
        ip("link set lo up", "link add one type veth peer name far", "link set far up",
           "addr add 10.1.0.2/24 dev one", "link set one up", "route add default via 10.1.0.1")
        watch.start()
        assert watch._socket is not None

        async def after(name, *lines, wait=0.3):
            del said[:]
            ip(*lines)
            await asyncio.sleep(wait)
            print(name, len(said), flush=True)

        await after("noise", "link add d0 type veth peer name d1", "link set d0 up",
                    "addr add 172.17.0.1/16 dev d0", "addr change 10.1.0.2/24 dev one",
                    "neigh add 10.1.0.7 lladdr 02:00:00:00:00:07 dev one",
                    "route add 10.9.0.0/16 via 10.1.0.1", "link del d0")
        await after("gateway", "route replace default via 10.1.0.3")
        await after("address", "addr add 10.2.0.2/24 dev one",
                    "route replace default via 10.2.0.1 src 10.2.0.2")
        await after("down", "link set one down")
        await after("up", "link set one up", "route add default via 10.2.0.1 src 10.2.0.2")
        watch.close()
        if not os.path.exists("/proc/net/if_inet6"):
            return
        ip("-6 addr add 2001:db8:1::2/64 dev one nodad", "-6 route add default dev one")
        watch = NetworkChanges(lambda: said.append(1), ["2001:db8:9::1"])
        watch.start()
        await after("family", "-6 route del default dev one")
        watch.close()

    asyncio.run(main())
""")


@pytest.mark.skipif(sys.platform != "linux", reason="netlink")
def test_the_kernel_tells_what_matters_and_noise_is_not_told() -> None:
    tools = [shutil.which(name) for name in ("unshare", "ip")]
    if None in tools:
        pytest.skip("needs unshare and ip")
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace to be had")
    done = subprocess.run(
        [*command, sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.split("\n")[:-1] == [
        "noise 0",
        "gateway 1",
        "address 1",
        "down 0",
        "up 1",
        *(["family 1"] if Path("/proc/net/if_inet6").exists() else []),
    ], done.stdout + done.stderr
