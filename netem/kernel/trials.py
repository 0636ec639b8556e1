"""Each thing that a driver needs, really tried: in a child of its own, in namespaces of its own.

A process of its own, started by `netem.kernel.probe`; it prints one JSON object.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from netem.errors import ImpairmentError
from netem.kernel.ends import PacketEnd
from netem.kernel.interfaces import configure, find_tool, make_veth, open_tun
from netem.kernel.libc import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, unshare
from netem.kernel.namespaces import Namespace, become_root_of_own
from netem.kernel.power import ensure_power, lacking_power
from netem.kernel.processes import die_with_parent, run_first
from netem.vm.packages import missing

__all__ = ["TRIALS", "main"]

PATIENCE: Final = 5.0
"""Seconds for one trial."""


class RefusedError(Exception):
    """In the words of whoever refused."""


def _own_network() -> None:
    lacking = lacking_power()
    if lacking is not None:
        raise RefusedError(lacking)


def _network_namespace() -> None:
    unshare(CLONE_NEWNET)


def _user_namespace() -> None:
    become_root_of_own()
    # Some systems let one in and then grant nothing there.
    Namespace.new().close()


def _bed_namespace() -> Namespace:
    """A network where we may do as we like, the way that `run` gets one."""
    ensure_power(own_network=True)
    return Namespace.new()


def _pid_namespace() -> None:
    _bed_namespace()
    unshare(CLONE_NEWPID | CLONE_NEWNS)


def _tun() -> None:
    os.close(open_tun(_bed_namespace(), "netem-probe"))


def _pair() -> Namespace:
    here = _bed_namespace()
    make_veth(here, "near", Namespace.new(), "far")
    return here


def _veth() -> None:
    _pair()


def _packet_socket() -> None:
    with _pair().entered():
        os.close(PacketEnd.open("near"))


def _tool(name: str, *arguments: str) -> None:
    tool = find_tool(name)
    if tool is None:
        raise RefusedError(f"there is no {name}")
    done = subprocess.run(
        [tool, *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RefusedError(said[0] if said else f"{name}: status {done.returncode}")


def _qdisc(*words: str) -> Callable[[], None]:
    def trial() -> None:
        with _pair().entered():
            _tool("tc", "qdisc", "add", "dev", "near", "root", *words)

    return trial


def _nft() -> None:
    with _bed_namespace().entered():
        _tool("nft", "add table inet netem-probe")


def _cubic() -> None:
    here = _bed_namespace()
    configure(
        here,
        ["link set dev lo up", "route replace 198.18.0.0/24 dev lo congctl cubic"],
    )


def _sched_fifo() -> None:
    refused = run_first()
    if refused is not None:
        raise RefusedError(refused)


def _tool_there(name: str) -> Callable[[], None]:
    def trial() -> None:
        if find_tool(name) is None:
            raise RefusedError("not found, neither on PATH nor in the usual folders")

    return trial


def _machine() -> None:
    absent = missing()
    if absent is not None:
        raise RefusedError(absent)


TRIALS: Final[dict[str, Callable[[], None]]] = {
    "own network": _own_network,
    "network namespace": _network_namespace,
    "user namespace": _user_namespace,
    "pid namespace": _pid_namespace,
    "TUN": _tun,
    "veth": _veth,
    "packet socket": _packet_socket,
    "TCP cubic": _cubic,
    "sch_netem": _qdisc("netem", "loss", "1%"),
    "sch_tbf": _qdisc("tbf", "rate", "1mbit", "burst", "3000", "limit", "30000"),
    "nftables": _nft,
    "SCHED_FIFO": _sched_fifo,
    "ip": lambda: _tool("ip", "-json", "link"),
    "tc": _tool_there("tc"),
    "nft": _tool_there("nft"),
    "machine": _machine,
}


def main(_arguments: list[str]) -> None:
    """Print the refusals by name; null for what is possible."""
    die_with_parent()
    json.dump({name: _tried(trial) for name, trial in TRIALS.items()}, sys.stdout)


def _tried(trial: Callable[[], None]) -> str | None:
    """Why not, or None; what it does to its process ends with that."""
    with _pipe() as (told, tell):
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.write(tell, _words_of(trial).encode())
            os._exit(0)
        os.close(tell)
        try:
            return _heard(told)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    told, tell = os.pipe()
    try:
        yield told, tell
    finally:
        os.close(told)


def _words_of(trial: Callable[[], None]) -> str:
    die_with_parent()
    try:
        trial()
    except RefusedError as refused:
        return f"no {refused}"
    except ImpairmentError as refused:
        # What follows the reason is advice, which is the probe's own business.
        return f"no {str(refused).partition('. ')[0]}"
    except OSError as error:
        return f"no {error.strerror}"
    except subprocess.TimeoutExpired:
        return "no no answer in time"
    return "yes"


def _heard(told: int) -> str | None:
    deadline = time.monotonic() + PATIENCE
    if not select.select([told], (), (), max(0.0, deadline - time.monotonic()))[0]:
        return f"no answer within {PATIENCE:g} s"
    said = os.read(told, 4096).decode(errors="replace")
    if said == "yes":
        return None
    return said.removeprefix("no ") or "the trial itself was killed"
