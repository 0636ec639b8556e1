"""A relay on link-local addresses of IPv6, which mean nothing without their interface."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the interface is made by ip")

SCENE = """
import socket, subprocess
from netem.drivers.relay import Relay
from netem.profile import Answer, Block, Profile
for words in ("link add near type veth peer name far", "link set lo up", "link set far up",
              "link set near up", "address add fe80::5/64 dev near nodad"):
    subprocess.run(["ip", *words.split()], check=True)
scope = socket.if_nametoindex("near")
server, client = (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2))
for each in server, client:
    each.bind(("fe80::5", 0, 0, scope))
    each.settimeout(5)
target = ("fe80::5%near", server.getsockname()[1])
with Relay(Profile(name="p"), 1, target, ("fe80::5%near", 0)) as relay:
    client.sendto(b"there", (*relay.address, 0, scope))
    data, source = server.recvfrom(9)
    server.sendto(b"back", source)
    print(data, client.recv(9), relay.counts().send_errors)
refusing = Profile(name="p", block=Block(answer=Answer.REJECT))
with Relay(refusing, 1, ("::1", 9), ("fe80::5%near", 0)) as it:
    client.connect((*it.address, 0, scope))
    client.send(b"anybody?")
    try:
        client.recv(9)
    except ConnectionRefusedError:
        print("refused")
"""


def test_both_sides_of_a_relay_may_be_link_local() -> None:
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    command = ["unshare", "--net", sys.executable, "-c", SCENE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "b'there' b'back' 0\nrefused\n", done.stderr
