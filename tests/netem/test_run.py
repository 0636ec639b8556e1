"""`python -m netem run`: statuses, addresses, the server's side, the summary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from netem.kernel.interfaces import configure, set_sysctl
from tests.netem.outer import PYTHON, Outer

ECHO = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "s.bind(('127.0.0.1', 9000))\n"
    "while True: d, a = s.recvfrom(2000); s.sendto(d, a)"
)

ASK = (
    "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
    "for n in range(20): s.sendto(b'%d' % n, ('127.0.0.1', 9000))\n"
    "print(s.recv(99).decode(), os.environ['NETEM_SERVER'])"
)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -15 $$"), 143),
    ],
)
def test_the_status_is_the_commands(outer: Outer, command: tuple[str, ...], status: int) -> None:
    done = outer.netem("run", "loss5", "--seed", "4", "--", *command)
    assert done.returncode == status
    said = rf"netem: loss5, seed 4, driver tun: 0\.\d s, status {status}\n"
    assert re.search(said, done.stderr)
    assert done.stdout == ""


def test_a_command_that_is_not_there(outer: Outer, tmp_path: Path) -> None:
    for name in ("no-such-command", "/no/such/command", ""):
        done = outer.netem("run", "loss5", "--", name)
        assert (done.returncode, done.stderr) == (127, f"netem: {name}: not found\n")
    plain = tmp_path / "plain"
    plain.write_text("data")
    done = outer.netem("run", "loss5", "--", str(plain))
    assert (done.returncode, done.stderr) == (126, f"netem: {plain}: cannot be executed\n")


def test_a_command_that_is_no_program(outer: Outer, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\0\1\2\3")
    garbage.chmod(0o755)
    done = outer.netem("run", "loss5", "--", str(garbage))
    assert done.returncode == 126
    assert f"netem: {garbage}: Exec format error" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("loss55", "--", "true"), 'did you mean "loss5"?'),
        (("loss5",), "Missing argument 'COMMAND"),
        (("loss5", "--driver", "relay", "--", "true"), "needs --server HOST:PORT"),
        (("loss5", "--driver", "tun", "--server", "[::1]:1", "--", "true"), "goes with --driver"),
        (("loss5", "--server", "localhost", "--", "true"), "is no HOST:PORT"),
        (("loss5", "--server", "h:99999", "--", "true"), "is no HOST:PORT"),
        (("loss5", "--server", "h:1", "--serve", "x", "--", "true"), "need a network apart"),
        (("loss5", "--ready", "80", "--", "true"), "CMD of --serve"),
        (("loss5", "--congestion", "reno\nlink del lo", "--", "true"), "is no congestion control"),
        (("loss5", "--serve", "x", "--ready-within", "nan", "--", "true"), "no number of seconds"),
        (("loss5", "--driver", "vm", "--", "true"), "in one of them, with --serve CMD"),
        (("4g", "--driver", "vm", "--serve", "x", "--localhost", "true"), "crosses no router"),
        (("4g", "--driver", "tc", "--localhost", "--", "true"), "crosses no router"),
        (("4g", "--print"), "python -m netem lines 4g TO_CLIENT TO_SERVER"),
        (("4g", "--print", "--driver", "vm", "--", "true"), "the lines of --driver tc"),
        (("loss5", "--seed", "-1", "--", "true"), "--seed"),
        (("loss5", "--json", "/no/such/folder/x", "--", "true"), "No such file or directory"),
    ],
)
def test_wrong_usage(outer: Outer, arguments: tuple[str, ...], words: str) -> None:
    done = outer.netem("run", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_both_families_cross_the_link_and_are_counted(outer: Outer, tmp_path: Path) -> None:
    report, profile = tmp_path / "report.json", tmp_path / "far.toml"
    profile.write_text('summary = "far"\n[both]\ndelay = "40ms"\n')
    script = (
        "ping -q -c 10 -i 0.01 $NETEM_SERVER && ping -q -c 10 -i 0.01 $NETEM_SERVER6"
        " && echo $NETEM_PROFILE $NETEM_SEED $NETEM_CLIENT"
    )
    done = outer.netem(
        "run", str(profile), "--seed", "7", "--json", str(report), "--", "sh", "-c", script
    )
    assert done.returncode == 0
    assert done.stdout.count(" 0% packet loss") == 2
    assert "far 7 198.18.0.2" in done.stdout
    assert "the server is at 198.18.0.1 and fd6e:6574:656d::1" in done.stderr
    told = json.loads(report.read_text())
    for way in ("up", "down"):
        assert told["measured"][way]["offered"] == 20
        assert told["tally"]["path"][way]["link"]["delivered"] == 20
        assert told["measured"][way]["delay"] == pytest.approx(told["set"][way]["delay"], abs=0.004)
    assert "20 packets" in done.stderr


def test_the_same_seed_loses_the_same_with_every_driver(outer: Outer, tmp_path: Path) -> None:
    lost = []
    for number, driver in enumerate(("tun", "veth")):
        report = tmp_path / f"{number}.json"
        done = outer.netem(
            *("run", "loss20", "--seed", "11", "--driver", driver, "--json", str(report), "--"),
            *("ping", "-c", "60", "-i", "0.005", "-W", "0.3", "198.18.0.1"),
        )
        lost.append([line.split()[4] for line in done.stdout.splitlines() if "icmp_seq" in line])
    assert lost[0] == lost[1]
    assert 20 < len(lost[0]) < 60


def test_a_server_of_its_own(outer: Outer) -> None:
    done = outer.netem(
        *("run", "clear", "--serve", f"exec {PYTHON} -m http.server 8000", "--"),
        *("sh", "-c", "curl -s -o /dev/null -w '%{http_code} ' http://$NETEM_SERVER:8000/"),
    )
    assert (done.returncode, done.stdout) == (0, "200 ")


def test_localhost_is_the_servers(outer: Outer) -> None:
    serve = f'exec {PYTHON} -c "{ECHO}"'
    done = outer.netem(
        *("run", "loss5", "--localhost", "--ready", "9000", "--serve", serve, "--"),
        *(sys.executable, "-c", ASK),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "127.0.0.1"
    # Twenty, and the ICMP errors for answers that came after the command had ended.
    assert re.search(r"up: [23]\d packets", done.stderr)


def test_localhost_in_the_callers_network(outer: Outer) -> None:
    with outer.namespace.entered():
        server = subprocess.Popen([sys.executable, "-c", ECHO])
    try:
        done = outer.netem("run", "clear", "--localhost", "--", sys.executable, "-c", ASK)
    finally:
        server.kill()
        server.wait()
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "127.0.0.1"


@pytest.mark.parametrize(
    ("serve", "words"),
    [
        ("exit 3", "The server ended with status 3 before it listened; CMD has to stay in"),
        ("sleep 60", "did not open any port within 0.4 s"),
        ("no-such-server", "ended with status 127"),
    ],
)
def test_a_server_that_does_not_come_up(outer: Outer, serve: str, words: str) -> None:
    done = outer.netem("run", "clear", "--ready-within", "0.4", "--serve", serve, "--", "true")
    assert done.returncode == 125
    assert words in done.stderr
    assert outer.survivors() == []


def test_a_server_on_another_port(outer: Outer) -> None:
    serve = f"exec {PYTHON} -m http.server 8000"
    done = outer.netem(
        *("run", "clear", "--ready-within", "1", "--ready", "8001", "--serve", serve, "--", "true")
    )
    assert done.returncode == 125
    assert "did not open port 8001, but 8000, within 1 s;" in done.stderr


def test_a_server_that_ends_before_the_command_is_told(outer: Outer, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    serve = f"{PYTHON} -m http.server 8000 & read line <{tmp_path}/fifo; exit 4"
    (tmp_path / "end").write_text(
        f"echo end >{tmp_path}/fifo; "
        "while curl -s http://$NETEM_SERVER:8000/ >/dev/null; do :; done; sleep 0.2; exit 7"
    )
    os.mkfifo(tmp_path / "fifo")
    done = outer.netem(
        *("run", "clear", "--ready", "8000", "--serve", serve, "--json", str(report), "--"),
        *("sh", str(tmp_path / "end")),
    )
    assert done.returncode == 7
    said = "warning: the server had ended before the command did, with status 4"
    assert done.stderr.endswith(f"netem: {said}\n")
    assert json.loads(report.read_text())["notes"] == [said]


def test_a_server_may_write_something_down_at_the_end(outer: Outer, tmp_path: Path) -> None:
    note = tmp_path / "note"
    server = (
        f"trap 'echo ended > {note}; exit' TERM; {PYTHON} -m http.server 8000 & "
        "while :; do sleep 0.05; done"
    )
    assert outer.netem("run", "clear", "--serve", server, "--", "true").returncode == 0
    assert note.read_text() == "ended\n"


def test_a_network_that_uses_our_addresses_is_left_alone(outer: Outer) -> None:

    configure(outer.namespace, ["address add 198.18.0.1/16 dev foreign"])
    done = outer.netem("run", "clear", "--", "sh", "-c", "ping -qc1 $NETEM_SERVER")
    assert done.returncode == 0
    assert "198.19.0.1" in done.stderr


def test_standard_input_reaches_the_command(outer: Outer) -> None:
    run = outer.start("run", "clear", "--", "wc", "-c", stdin=subprocess.PIPE)
    out, _ = run.communicate(b"x" * 100_000, timeout=20)
    assert out.split() == [b"100000"]


def test_the_command_has_its_callers_descriptors_and_none_of_ours(
    outer: Outer, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.write_text("for the command")
    before = ["sh", "-c", f'exec "$@" 7<{given}', "sh"]
    done = outer.netem(
        "run", "clear", "--", "sh", "-c", "cat <&7; echo; ls /proc/self/fd", before=before
    )
    # The last one is the folder that `ls` reads.
    assert done.stdout.split("\n")[:-1] == ["for the command", "0", "1", "2", "3", "7"]


def test_the_report_that_cannot_be_written_is_a_failure(outer: Outer) -> None:
    done = outer.netem("run", "clear", "--json", "/dev/full", "--", "true")
    assert done.returncode == 125
    assert "--json /dev/full: No space left on device" in done.stderr


def test_blocked_udp_is_answered_and_only_at_its_port(outer: Outer) -> None:
    ask = (
        "import socket, os, sys\n"
        "for port in 443, 444:\n"
        "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3)\n"
        "    s.connect((os.environ['NETEM_SERVER'], port)); s.send(b'x')\n"
        "    try: s.recv(9)\n"
        "    except OSError as error: print(port, type(error).__name__)\n"
    )
    # Both are closed there, too: what tells them apart is how many packets the path took.
    done = outer.netem(
        "run", "udp-blocked-reject", "--udp-port", "443", "--", sys.executable, "-c", ask
    )
    assert done.stdout.splitlines() == ["443 ConnectionRefusedError", "444 ConnectionRefusedError"]
    assert "1 blocked (50.00 %)" in done.stderr
    other = outer.netem(
        "run", "udp-blocked-prohibit", "--udp-port", "444", "--", sys.executable, "-c", ask
    )
    assert other.stdout.splitlines() == ["443 ConnectionRefusedError", "444 OSError"]


def test_where_ipv6_is_switched_off_the_link_has_ipv4(outer: Outer) -> None:
    for scope in ("all", "default"):
        set_sysctl(outer.namespace, f"ipv6/conf/{scope}/disable_ipv6", "1")
    done = outer.netem(
        "run", "clear", "--", "sh", "-c", 'ping -qc1 $NETEM_SERVER && echo "[$NETEM_SERVER6]"'
    )
    assert done.returncode == 0
    assert done.stdout.endswith("[]\n")
    assert "the server is at 198.18.0.1\n" in done.stderr


def test_busybox_is_told_apart(outer: Outer, tmp_path: Path) -> None:
    script = tmp_path / "ip"
    script.write_text("#!/bin/sh\necho 'BusyBox v1.36 multi-call binary.' >&2\nexit 1\n")
    script.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = outer.netem("run", "clear", "--", "true", env={"PATH": path})
    assert done.returncode == 125
    assert "BusyBox's, which cannot do it; install iproute2" in done.stderr
