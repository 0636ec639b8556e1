"""Waiting until a server listens, seen from outside: in the socket tables of its namespace."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from netem.cli.conducting import SignalWatch
from netem.errors import ImpairmentError
from netem.kernel.contained import Contained
from netem.kernel.namespaces import Namespace
from netem.kernel.signals import ENDING

__all__ = ["InterruptedWaitError", "end_server", "wait_until_ready"]

STEP: Final = 0.02
GRACE: Final = 3.0
"""Seconds that a server has after SIGTERM."""

NAMED: Final = 5
"""Ports of a server that a message names."""

# linux/tcp_states.h; a bound UDP socket that is not connected counts as closed.
_LISTENS: Final = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}


class InterruptedWaitError(Exception):
    """A signal ended the wait."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def listening_ports(namespace: Namespace) -> Iterator[int]:
    """Of TCP sockets that listen and UDP sockets that are bound, in both families."""
    with namespace.entered():
        for table, state in _LISTENS.items():
            try:
                lines = Path("/proc/thread-self/net", table).read_text().splitlines()[1:]
            except FileNotFoundError:
                continue
            for line in lines:
                _, local, _, found, *_ = line.split()
                if found == state:
                    yield int(local.rpartition(":")[2], 16)


def wait_until_ready(
    server: Contained, namespace: Namespace, port: int | None, patience: float, watch: SignalWatch
) -> None:
    """Until `port`, or any at all, is open there."""
    deadline = time.monotonic() + patience
    while True:
        ports = set(listening_ports(namespace))
        if port in ports or (port is None and ports):
            return
        status = server.poll()
        if status is not None:
            raise ImpairmentError(
                f"The server ended with status {status} before it listened; "
                "CMD has to stay in the foreground."
            )
        if time.monotonic() > deadline:
            raise ImpairmentError(_unready(port, sorted(ports), patience))
        caught = watch.next(STEP)
        if caught is not None and caught[0] in ENDING:
            raise InterruptedWaitError(caught[0])


def _unready(port: int | None, ports: list[int], patience: float) -> str:
    late = f"within {patience:g} s; give it longer with --ready-within"
    if port is None:
        return f"The server did not open any port {late}, or name its port with --ready."
    if not ports:
        return f"The server did not open port {port} {late}."
    others = ", ".join(map(str, ports[:NAMED])) + (", ..." if len(ports) > NAMED else "")
    return f"The server did not open port {port}, but {others}, {late}, or correct --ready."


def end_server(server: Contained) -> None:
    """Ask first: a server may have something to write down."""
    deadline = time.monotonic() + GRACE
    server.send(signal.SIGTERM)
    while server.poll() is None:
        if time.monotonic() > deadline:
            server.close()
            return
        time.sleep(STEP)
