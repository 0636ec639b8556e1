"""SIGTERM and SIGINT with a listener of every kind on every route: the end comes in time."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from bench.process import ServerProcess
from tests.draining.listeners import ENDLESS, QuicClient, half_open_quic, request, tls

GRACE = 0.6
SLACK = 1.0
"""What the process has beyond the grace, by its promise."""

Start = Callable[..., ServerProcess]


class Closes(Protocol):
    def close(self) -> object: ...


def create(server: ServerProcess) -> str:
    connection = request(
        server.port, server.ca, "/v1/sessions?source=counting&frames=100000", method="POST",
        headers="Content-Length: 0\r\nConnection: close\r\n", read=0,
    )  # fmt: skip
    answer = b""
    while part := connection.recv(65536):
        answer += part
    connection.close()
    session: str = json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])["session"]
    return session


def everybody(server: ServerProcess) -> Iterator[Closes]:
    """Somebody on every route of both doors, who goes on for ever."""
    port, ca = server.port, server.ca
    speak = f"/v1/speak?{ENDLESS}"
    audio = f"/v1/sessions/{create(server)}/audio"
    yield request(port, ca, speak)
    yield request(port, ca, audio)
    yield request(port, ca, speak, headers="Accept: audio/wav\r\n")
    yield request(port, ca, speak, headers="Accept: audio/l16\r\n")
    yield request(port, ca, speak.replace("lead=1", "lead=max"), read=0)  # It never reads.
    yield request(port, ca, speak, method="HEAD")
    control = f"/v1/sessions/{create(server)}/control"
    unfinished = "Content-Type: application/json\r\nContent-Length: 100\r\n"
    yield request(port, ca, control, method="POST", headers=unfinished, read=0)
    idle = request(port, ca, "/healthz", read=0)
    assert idle.recv(4096)
    yield idle
    yield tls(port, ca)
    yield socket.create_connection(("127.0.0.1", port))
    yield half_open_quic(port)
    yield QuicClient(port, ca, [("GET", speak), ("GET", audio), ("POST", control)])
    plain = QuicClient(port, ca, [("HEAD", speak), ("GET", speak)])
    yield plain
    yield QuicClient(port, ca, [("GET", speak.replace("lead=1", "lead=max"))], reads=False)
    yield request(port, ca, "/v1/sources?voices=", read=0)


@pytest.fixture
def crowded(server_process: Start) -> Iterator[Callable[..., ServerProcess]]:
    """A server with everybody on it."""
    with ExitStack() as closing:

        def start(*options: str) -> ServerProcess:
            server = server_process("--grace", str(GRACE), *options)
            for each in everybody(server):
                closing.callback(each.close)
            return server

        yield start


def ended_well(server: ServerProcess, within: float) -> None:
    """The process is gone in time, with status 0 and no traceback."""
    began = time.monotonic()
    server.process.wait(within + 5)
    took = time.monotonic() - began
    assert server.wait() == 0
    assert "Traceback" not in str(server.log)
    assert not [line for line in server.log if line.get("event") == "PeerFaulted"], server.log
    assert took < within, took
    rebind(server.port)


def rebind(port: int) -> None:
    """Another server could begin this instant."""
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        with socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.bind((host, port))
        with socket.socket(family, socket.SOCK_STREAM) as tcp:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As any server does.
            tcp.bind((host, port))
            tcp.listen()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_with_everybody_there_it_ends_within_the_grace_and_a_second(
    crowded: Callable[..., ServerProcess], number: signal.Signals
) -> None:
    server = crowded()
    server.process.send_signal(number)
    ended_well(server, GRACE + SLACK)
    assert server.log[-1]["event"] == "ServerStopped"


def test_a_second_signal_ends_it_at_once(crowded: Callable[..., ServerProcess]) -> None:
    server = crowded("--grace", "30")
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    ended_well(server, 0.3)


def test_without_anybody_it_waits_for_nobody(server_process: Start) -> None:
    server = server_process("--grace", "20")
    server.process.send_signal(signal.SIGTERM)
    ended_well(server, 1.0)


def test_listeners_are_told_when_to_come_back_one_after_the_other(server_process: Start) -> None:
    server = server_process("--grace", "1", "--attach-rate", "10")
    listeners = [request(server.port, server.ca, f"/v1/speak?{ENDLESS}") for _ in range(5)]
    server.process.send_signal(signal.SIGTERM)
    waits = sorted(float(notice(each)["retry_after"]) for each in listeners)
    assert waits == [1.0, 1.1, 1.2, 1.3, 1.4]
    ended_well(server, 2.0)


def notice(connection: ssl.SSLSocket) -> dict[str, Any]:
    """The last thing that was said, before the connection ended without the zero chunk."""
    heard = b""
    with contextlib.suppress(OSError):
        while part := connection.recv(65536):
            heard += part
    connection.close()
    assert not heard.endswith(b"0\r\n\r\n")
    begin = heard.rindex(b'{"code"')
    told: dict[str, Any] = json.loads(heard[begin : heard.rindex(b"}") + 1])
    return told


def test_a_client_that_resets_in_mid_drain_changes_nothing(server_process: Start) -> None:
    server = server_process("--grace", "1")
    stuck = request(server.port, server.ca, f"/v1/speak?{ENDLESS}&lead=max".replace("lead=1&", ""))
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket(fileno=stuck.detach()).close()
    ended_well(server, 1.0)


def test_a_server_waits_for_the_port_of_one_that_ends(server_process: Start, ca_file: Path) -> None:
    first = server_process("--grace", "1.5")
    stuck = QuicClient(first.port, ca_file, [("GET", f"/v1/speak?{ENDLESS}")], reads=False)
    first.process.send_signal(signal.SIGTERM)
    second = server_process("--port", str(first.port), "--wait-for-port", "8")
    assert first.wait() == 0
    assert b"ok" in second.get("/healthz")
    assert second.port == first.port
    stuck.close()
