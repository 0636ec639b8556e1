"""Networks that let no UDP, no TCP or no IPv6 through: the first frame within a second in all.

In a network and a view of /etc/hosts that end with the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

SCENE = """
import asyncio, json, socket, subprocess, sys
from pathlib import Path
from quicserver.app import Server
from tenuto.client import Address, PathStore, TransportChosen, TransportFailed, Trust, open_stream
from tenuto.settings import ServerSettings
folder, hosts = Path(sys.argv[1]), Path(sys.argv[2])
def run(*words):
    subprocess.run(words, check=True)
def block(*rules):
    subprocess.run(["nft", "delete", "table", "inet", "t"], capture_output=True, check=False)
    run("nft", "add table inet t")
    run("nft", "add chain inet t i { type filter hook input priority 0 ; }")
    for rule in rules:
        run("nft", f"add rule inet t i {rule}")
def v4(port, host="127.0.0.1"):
    return Address(socket.AF_INET, (host, port))
def v6(port):
    return Address(socket.AF_INET6, ("::1", port, 0, 0))
async def listen(name, port, host="localhost", addresses=None):
    events, loop = [], asyncio.get_running_loop()
    began = loop.time()
    url = f"https://{host}:{port}/v1/speak?source=counting&frames=5&lead=max"
    trust = Trust(cafile=folder / "ca.pem")
    async with open_stream(
        url, trust=trust, memory=PathStore(), on_event=events.append, addresses=addresses
    ) as stream:
        await anext(stream)
        first = loop.time() - began
        frames = 1 + len([frame async for frame in stream])
    over = [event.transport for event in events if isinstance(event, TransportChosen)]
    failed = [event.failure.kind for event in events if isinstance(event, TransportFailed)]
    print(json.dumps([name, first, frames, over, failed]), flush=True)
async def serve(*hosts):
    settings = ServerSettings(
        hosts=hosts, port=0, test_sources=True, certificates_folder=folder, grace=0.2
    )
    server = Server(settings, on_event=lambda event: None)
    await server.start()
    return server
async def main():
    run("ip", "link", "set", "lo", "up")
    run("mount", "--bind", str(hosts), "/etc/hosts")
    server = await serve("127.0.0.1")
    port, other = server.port, (server.port % 60000) + 1024
    udp, tcp = f"udp dport {port}", f"tcp dport {port}"
    ways = {
        "open": (),
        "udp dropped": (f"{udp} drop",),
        "udp rejected": (f"{udp} reject",),
        "udp prohibited": (f"{udp} reject with icmpx type admin-prohibited",),
        "udp first packet only": (f"{udp} ct original packets > 1 drop",),
        "tcp dropped": (f"{tcp} drop",),
        "tcp rejected": (f"{tcp} reject with tcp reset",),
    }
    for name, rules in ways.items():
        block(*rules)
        await listen(name, port, "127.0.0.1")
    block("ip daddr 127.0.0.9 drop")
    await listen("one address black", port, addresses=[v4(port, "127.0.0.9"), v4(port)])
    block(f"ip daddr 127.0.0.9 drop", f"{udp} drop")
    await listen("one black, udp dropped", port, addresses=[v4(port, "127.0.0.9"), v4(port)])
    block()
    await listen("name with ::1 first", port)
    block("ip6 daddr ::1 drop")
    await listen("name with ::1 first and black", port)
    await server.stop()
    block()
    server = await serve("127.0.0.1", "::1")
    await listen("both families", server.port)
    await listen("[::1]", server.port, "[::1]")
    await server.stop()
    for device in ("all", "lo"):
        Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1")
    server = await serve("127.0.0.1")
    await listen("ipv6 switched off", server.port)
    await listen("ipv6 off, ::1 given", server.port, addresses=[v6(server.port), v4(server.port)])
    await server.stop()
asyncio.run(main())
"""

# By name: who carries it, and what QUIC met, where that is certain.
EXPECTED = {
    "open": "quic",
    "udp dropped": "tcp",
    "udp rejected": "tcp",
    "udp prohibited": "tcp",
    "udp first packet only": "tcp",
    "tcp dropped": "quic",
    "tcp rejected": "quic",
    "one address black": "",
    "one black, udp dropped": "tcp",
    "name with ::1 first": "quic",
    "name with ::1 first and black": "",
    "both families": "quic",
    "[::1]": "quic",
    "ipv6 switched off": "quic",
    "ipv6 off, ::1 given": "quic",
}


@pytest.fixture(scope="module")
def heard(ca_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    hosts = tmp_path_factory.mktemp("hosts") / "hosts"
    hosts.write_text("::1 localhost\n127.0.0.1 localhost\n")
    scene = [sys.executable, "-W", "error", "-c", SCENE, str(ca_file.parent), str(hosts)]
    done = subprocess.run(
        ["unshare", "--net", "--mount", *scene],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("way", EXPECTED)
def test_the_first_frame_comes_within_a_second(heard: dict[str, Any], way: str) -> None:
    first, frames, over, _ = heard[way]
    assert first < 1.0
    assert frames == 5
    assert len(over) == 1
    assert not EXPECTED[way] or over == [EXPECTED[way]]


@pytest.mark.parametrize("way", ["udp rejected", "udp prohibited"])
def test_icmp_moves_on_at_once(heard: dict[str, Any], way: str) -> None:
    first, _, _, failed = heard[way]
    assert first < 0.25
    assert failed in (["refused"], ["unreachable"])
