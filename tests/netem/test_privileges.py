"""Who one is and what the machine has: a way that works, or the reason and the ways out."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from netem.kernel.interfaces import find_tool
from netem.kernel.trials import TRIALS
from netem.vm.packages import missing
from tests.netem.outer import PYTHON, Outer, eventually

PLAIN_USER = [sys.executable, "-m", "tests.netem.unprivileged"]
NO_NET_ADMIN = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]
NO_NAMESPACES = [
    *("unshare", "-r", "sh", "-c"),
    'echo 0 >/proc/sys/user/max_net_namespaces; exec "$@"',
    "sh",
]

SERVE = ["--serve", f"exec {PYTHON} -m http.server 8000"]
ASK = "curl -s -o /dev/null -w '%{http_code} ' http://$NETEM_SERVER:8000/"


def hidden(*tools: str) -> list[str]:
    """The wrapper without which they would be found."""
    lines = [f"mount --bind /dev/null {Path(find_tool(tool) or tool).resolve()}" for tool in tools]
    return ["unshare", "-m", "sh", "-c", f'{"; ".join(lines)}; exec "$@"', "sh"]


def probed(outer: Outer, before: list[str]) -> dict[str, dict[str, dict[str, object]]]:
    done = outer.netem("probe", "--json", before=before)
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, dict[str, dict[str, object]]] = json.loads(done.stdout)
    return told


def possible(told: dict[str, dict[str, dict[str, object]]]) -> set[str]:
    return {name for name, driver in told["drivers"].items() if driver["possible"]}


def test_root_may_do_all_that_the_kernel_has(outer: Outer) -> None:
    before = outer.state()
    told = probed(outer, [])
    assert outer.state() == before
    assert set(told["tried"]) == set(TRIALS)
    assert {"memory", "relay", "tun", "veth"} <= possible(told)
    assert ("vm" in possible(told)) == (missing() is None)
    netem = told["tried"]["sch_netem"]
    assert netem["possible"] or "qdisc kind is unknown" in str(netem["reason"])
    assert told["run"] == "by tun, the server in your own network or with --serve CMD"


def with_tun_of_mode(mode: str) -> list[str]:
    """Distributions differ in who may open TUN; here it is as the test says, for one process."""
    script = (
        f"""mount -t tmpfs none /dev/net && mknod -m {mode} /dev/net/tun c 10 200 && exec "$@" """
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


@pytest.mark.parametrize(("mode", "driver"), [("600", "veth"), ("666", "tun")])
def test_a_plain_user_gets_a_bed_with_a_server_of_its_own(
    outer: Outer, mode: str, driver: str
) -> None:
    before = [*with_tun_of_mode(mode), *PLAIN_USER]
    told = probed(outer, before)
    assert {"relay", "veth", driver} <= possible(told)
    if driver == "veth":
        assert "tun" not in possible(told)
        assert "/dev/net/tun: Permission denied" in str(told["tried"]["TUN"]["reason"])
    assert told["run"] == f"by {driver}, with --serve CMD: your own network cannot be changed"
    script = f"id -u; ping -qc1 $NETEM_SERVER >/dev/null && {ASK}; cat /proc/self/loginuid >&2"
    done = outer.netem("run", "clear", *SERVE, "--", "sh", "-c", script, before=before)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "65534\n200 "
    assert f"driver {driver}" in done.stderr
    assert outer.survivors() == []


@pytest.mark.parametrize(
    "before", [PLAIN_USER, NO_NET_ADMIN, ["unshare", "-r"]], ids=["user", "capability", "unshare"]
)
def test_who_may_not_change_his_network_is_told_the_ways_out(
    outer: Outer, before: list[str]
) -> None:
    state = outer.state()
    done = outer.netem("run", "loss5", "--", "true", before=before)
    assert done.returncode == 125
    assert done.stderr.startswith("netem: Your own network cannot be changed: ")
    for way in ("be root", "--serve CMD", "--driver relay --server HOST:PORT"):
        assert way in done.stderr
    assert done.stderr.count("\n") == 1
    assert outer.state() == state


@pytest.mark.parametrize("before", [NO_NET_ADMIN, ["unshare", "-r"]], ids=["capability", "unshare"])
def test_root_without_the_capability_has_the_way_of_a_user(outer: Outer, before: list[str]) -> None:
    done = outer.netem("run", "clear", *SERVE, "--", "sh", "-c", ASK, before=before)
    assert (done.returncode, done.stdout) == (0, "200 "), done.stderr


def test_inside_unshare_rn_all_is_as_for_root(outer: Outer) -> None:
    done = outer.netem(
        *("run", "loss5", "--", "sh", "-c", "ping -qc1 -W1 $NETEM_SERVER; exit 0"),
        before=["unshare", "-rn"],
    )
    assert done.returncode == 0
    assert "1 packet" in done.stderr


def test_without_namespaces_the_relay_is_left(outer: Outer) -> None:
    told = probed(outer, NO_NAMESPACES)
    assert possible(told) == {"memory", "relay"}
    assert "No space left on device" in str(told["tried"]["user namespace"]["reason"])
    assert told["run"] == "only with --driver relay --server HOST:PORT, for UDP"
    done = outer.netem("run", "loss5", *SERVE, "--", "true", before=NO_NAMESPACES)
    assert done.returncode == 125
    assert "No user namespace can be made here: unshare: No space left on device" in done.stderr


def test_without_iproute2(outer: Outer) -> None:
    before = hidden("ip", "tc")
    told = probed(outer, before)
    assert possible(told) == {"memory", "relay"}
    assert "install iproute2" in str(told["drivers"]["tun"]["way_out"])
    assert told["tried"]["ip"]["possible"] is False
    done = outer.netem("run", "loss5", "--", "true", before=before)
    assert done.returncode == 125
    assert "There is no `ip` here: install iproute2" in done.stderr
    # Only where it is not at all: sbin is looked at, whatever the PATH says.
    assert outer.netem("run", "clear", "--", "/bin/true", env={"PATH": "/none"}).returncode == 0


def test_without_qemu_or_a_kernel_for_it_both_are_named(outer: Outer, tmp_path: Path) -> None:
    nothing = outer.netem(
        "probe", "--json", before=hidden("busybox"), env={"XDG_CACHE_HOME": str(tmp_path)}
    )
    told = json.loads(nothing.stdout)
    assert "vm" not in possible(told)
    reason = str(told["tried"]["machine"]["reason"])
    assert "not installed: apt-get install busybox-static" in reason
    assert "run python -m netem.vm, which downloads Debian's" in reason
    assert "python -m netem.vm, which downloads a kernel" in str(told["drivers"]["vm"]["way_out"])


def test_without_a_proc_that_can_be_written(outer: Outer) -> None:
    before = ["unshare", "-m", "sh", "-c"]
    before += ['mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec "$@"']
    before += ["sh"]
    ping = ["--", "sh", "-c", "ping -qc1 $NETEM_SERVER"]
    assert outer.netem("run", "clear", *ping, before=before).returncode == 0
    done = outer.netem("run", "clear", "--localhost", *ping, before=before)
    assert done.returncode == 125
    assert "route_localnet cannot be set to 1: Read-only file system" in done.stderr


OTHER_SYSTEM = """
import sys, signal, os
sys.platform = "darwin"
for name in ("fcntl", "termios", "tty"):
    sys.modules[name] = None
for module, names in (
    (signal, "pthread_sigmask sigtimedwait sigwait"),
    (os, "sched_setscheduler memfd_create tcgetpgrp unshare setns"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
from netem.cli import main
main()
"""


def on_another_system(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", OTHER_SYSTEM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def test_another_system_says_linux_only() -> None:
    told = on_another_system("probe")
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("no: Linux only") == len(TRIALS)
    assert "only with --driver relay" in told.stdout
    done = on_another_system("run", "loss5", "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("netem: Linux only")
    assert on_another_system("list").returncode == 0


@pytest.fixture
def udp_echo() -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        stopped = threading.Event()

        def serve() -> None:
            while not stopped.is_set():
                try:
                    data, sender = server.recvfrom(2000)
                    server.sendto(data, sender)
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        stopped.set()
        thread.join()


ASK_RELAY = (
    "import os, socket; host, _, port = os.environ['NETEM_SERVER'].rpartition(':')\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
    "for n in range(10): s.sendto(b'%d' % n, (host, int(port)))\n"
    "print(s.recv(99).decode()); raise SystemExit(9)"
)


def test_a_relay_needs_nothing(udp_echo: int) -> None:
    server = ["--server", f"127.0.0.1:{udp_echo}"]
    for run in (on_another_system, here):
        done = run("run", "5g", *server, "--", sys.executable, "-c", ASK_RELAY)
        assert (done.returncode, done.stdout) == (9, "0\n"), done.stderr
        assert "driver relay" in done.stderr
        assert "10 packets" in done.stderr
        assert "not shown by a relay: TCP" in done.stderr


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "netem", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def test_a_relay_refuses_what_it_cannot_do(udp_echo: int) -> None:
    server = ["--server", f"127.0.0.1:{udp_echo}"]
    done = here("run", "udp-blocked-prohibit", *server, "--", "true")
    assert done.returncode == 125
    assert "block.answer prohibit" in done.stderr
    assert here("run", "loss5", *server, "--", "/no/such").returncode == 127


def test_a_command_beside_a_relay_hears_signals_and_dies_with_it(outer: Outer) -> None:
    sleeper = ["--", "sh", "-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done"]
    run = outer.start("run", "clear", "--server", "127.0.0.1:9", *sleeper)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.terminate()
    assert run.wait(10) == 6
    run.communicate()
    run = outer.start("run", "clear", "--server", "127.0.0.1:9", *sleeper)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.kill()
    run.communicate()
    assert eventually(lambda: not outer.survivors())


def test_what_a_command_beside_a_relay_leaves_behind_ends_with_it(outer: Outer) -> None:
    """Where the system lets us contain it, as it lets root."""
    daemons = "setsid sleep 60 & (setsid sh -c 'trap \"\" TERM; sleep 60' &) ; echo ready"
    relay = ["--server", "127.0.0.1:9"]
    done = outer.netem("run", "clear", *relay, "--", "sh", "-c", f"{daemons}; exit 4")
    assert done.returncode == 4
    assert "not contained" not in done.stderr
    assert outer.survivors() == []
    run = outer.start("run", "clear", *relay, "--", "sh", "-c", f"{daemons}; sleep 60")
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.kill()
    run.communicate()
    assert eventually(lambda: not outer.survivors())


def test_a_command_that_cannot_be_contained_is_said_to_be(outer: Outer) -> None:
    relay = ["--server", "127.0.0.1:9"]
    done = outer.netem("run", "clear", *relay, "--", "sh", "-c", "exit 4", before=PLAIN_USER)
    assert done.returncode == 4
    assert "not contained: what the command leaves behind goes on" in done.stderr


def test_a_relay_tells_of_nobody_there(outer: Outer) -> None:
    ask = ASK_RELAY.replace("print(s.recv(99).decode())", "import time; time.sleep(0.1)")
    done = outer.netem("run", "clear", "--server", "127.0.0.1:9", "--", sys.executable, "-c", ask)
    assert done.returncode == 9
    assert "ICMP errors from the server's side; is anybody there?" in done.stderr
