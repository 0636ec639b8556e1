"""Who comes by QUIC while a server drains for its restart is answered by the successor."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable

from bench.process import ServerProcess
from quicserver.handover import Estate
from quicserver.knocks import MAX_KNOCK_AGE, MAX_KNOCKS, Knock, Knocks
from tests.draining.listeners import ENDLESS, QuicClient, half_open_quic

Start = Callable[..., ServerProcess]


def test_one_packet_sent_while_it_drains_is_answered(server_process: Start) -> None:
    server = server_process("--grace", "1.5")
    path = f"/v1/speak?{ENDLESS}"
    stuck = QuicClient(server.port, server.ca, [("GET", path.replace("lead=1", "lead=max"))],
                       reads=False)  # fmt: skip
    told = QuicClient(server.port, server.ca, [("GET", path)])
    server.process.send_signal(signal.SIGHUP)
    while not told.resets:
        time.sleep(0.005)
    knocking = half_open_quic(server.port)
    sent = time.monotonic()
    knocking.settimeout(0.3)
    try:
        knocking.recv(2000)
        raise AssertionError("it was answered while it drained")
    except TimeoutError:
        pass
    knocking.settimeout(10)
    assert knocking.recv(2000)[0] & 0x80
    took = time.monotonic() - sent
    print(f"answered after {took:.3f} s")
    for each in (knocking, told, stuck):
        each.close()
    assert server.stop() == 0


def test_the_newest_are_kept_and_only_while_somebody_waits() -> None:
    knocks = Knocks()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as local:
        local.bind(("127.0.0.1", 0))
        for number in range(MAX_KNOCKS + 10):
            knocks.keep(b"%d" % number, ("127.0.0.1", number), local, float(number))
    assert len(knocks) == MAX_KNOCKS
    now = float(MAX_KNOCKS + 9)
    waiting = knocks.waiting(now)
    assert len(waiting) == MAX_KNOCK_AGE + 1
    assert waiting[-1] == Knock(b"%d" % now, ("127.0.0.1", MAX_KNOCKS + 9), "127.0.0.1")


def test_a_knock_outlasts_being_written_down() -> None:
    for sender in (("127.0.0.1", 5), ("::1", 5, 0, 0)):
        knock = Knock(bytes(range(256)), sender, sender[0])
        assert Knock.from_json(*json.loads(json.dumps(knock.to_json()))) == knock
    assert Estate().knocks == []
