"""A relay whose server is refused by a firewall, in every way that ICMP has a word for."""

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") is None,
    reason="the firewall is nft",
)

# The server hears 1; while it is refused 2 and 3 are sent, and once it is not, 4 arrives.
SCENE = """
import socket, subprocess, sys, time
from netem.drivers.relay import Relay
from netem.profile import Profile
host, verdict = sys.argv[1:]
family = socket.AF_INET6 if ":" in host else socket.AF_INET
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server, client = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
server.bind((host, 0))
server.settimeout(5)
address = server.getsockname()[:2]
def nft(line):
    subprocess.run(["nft", line], check=True)
with Relay(Profile(name="clean"), 1, address, (host, 0)) as relay:
    client.sendto(b"1", relay.address)
    assert server.recv(9) == b"1"
    nft("add table inet t")
    nft("add chain inet t i { type filter hook input priority 0 ; }")
    nft(f"add rule inet t i udp dport {address[1]} reject with {verdict}")
    for data in b"2", b"3":
        client.sendto(data, relay.address)
        time.sleep(0.2)
    nft("delete table inet t")
    client.sendto(b"4", relay.address)
    assert server.recv(9) == b"4"
    print("refused", relay.counts().refused)
"""


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("127.0.0.1", "icmp port-unreachable"),
        ("127.0.0.1", "icmp prot-unreachable"),
        ("127.0.0.1", "icmp admin-prohibited"),
        ("::1", "icmpv6 port-unreachable"),
        ("::1", "icmpv6 admin-prohibited"),
        ("::1", "icmpv6 policy-fail"),
        ("::1", "icmpv6 reject-route"),
    ],
)
def test_no_icmp_error_ends_a_relay(host: str, verdict: str) -> None:
    command = ["unshare", "--net", sys.executable, "-c", SCENE, host, verdict]
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "refused 2\n", done.stderr
