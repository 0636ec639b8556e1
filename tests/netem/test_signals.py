"""Ctrl-C and its kin, with a terminal and without; job control in a shell behind the link."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.netem.outer import MARK, PYTHON, Outer, eventually

COUNTING = (
    "trap 'echo got INT' INT; trap 'echo got TERM' TERM; echo ready; "
    "n=0; while [ $n -lt 100 ]; do sleep 0.05; n=$((n+1)); done"
)
"""Ends for no signal but SIGKILL."""

POLITE = (
    "trap 'echo got INT; exit 5' INT; trap 'echo got TERM; exit 6' TERM; echo ready; "
    "while :; do sleep 0.05; done"
)


def started(outer: Outer, script: str) -> subprocess.Popen[bytes]:
    run = outer.start("run", "clear", "--", "sh", "-c", script)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    return run


@pytest.mark.parametrize(("number", "said", "status"), [("INT", "INT", 5), ("TERM", "TERM", 6)])
def test_a_signal_reaches_the_command_once(
    outer: Outer, number: str, said: str, status: int
) -> None:
    run = started(outer, POLITE)
    run.send_signal(signal.Signals[f"SIG{number}"])
    out, err = run.communicate(timeout=10)
    assert (out.decode(), run.returncode) == (f"got {said}\n", status)
    assert f"status {status}" in err.decode()
    assert eventually(lambda: not outer.survivors())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_kills(outer: Outer, number: signal.Signals) -> None:
    run = started(outer, COUNTING)
    run.send_signal(number)
    assert run.stdout is not None
    assert run.stdout.readline() == f"got {number.name[3:]}\n".encode()
    assert run.poll() is None
    run.send_signal(number)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 128 + number
    assert "Traceback" not in err.decode()
    assert outer.survivors() == []


def test_a_signal_while_waiting_for_the_server(outer: Outer) -> None:
    run = outer.start("run", "clear", "--serve", "sleep 60", "--", "true")
    assert eventually(lambda: any(each.startswith("sleep") for each in outer.survivors()))
    run.terminate()
    out, err = run.communicate(timeout=10)
    assert run.returncode == 143
    assert b"Traceback" not in err
    assert eventually(lambda: not outer.survivors())


def test_ignored_signals_stay_ignored(outer: Outer) -> None:
    run = outer.start(
        *("run", "clear", "--", "sh", "-c", "echo ready; sleep 0.5; echo done"),
        before=["sh", "-c", "trap '' INT; exec \"$@\"", "sh"],
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGINT)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=10)
    assert (out, run.returncode) == (b"done\n", 0)


class Terminal:
    """A terminal and a program that leads its session, as a login has it."""

    def __init__(self, outer: Outer, argv: list[str]) -> None:
        self.master, slave = pty.openpty()

        def take() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        with outer.namespace.entered():
            self.process = subprocess.Popen(
                argv,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=take,  # noqa: PLW1509
                env={**os.environ, MARK: outer.mark, "PS1": "$ ", "TERM": "dumb"},
            )
        os.close(slave)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, pattern: str, patience: float = 10.0) -> str:
        """All up to where it stands; what comes after is kept for the next."""
        deadline = time.monotonic() + patience
        while (found := re.search(pattern, self.seen)) is None:
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.master], (), (), left)[0]
            assert ready, f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self.master, 65_536).decode(errors="replace")
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def shell(outer: Outer) -> Iterator[Terminal]:
    terminal = Terminal(outer, ["bash", "--norc", "--noprofile", "-i"])
    terminal.wait_for(r"\$ ")
    yield terminal
    terminal.close()


RUN = f"{PYTHON} -m netem run clear --"


def test_the_key_reaches_the_command_once(shell: Terminal) -> None:
    shell.type(f'{RUN} sh -c "{POLITE.replace("$", chr(92) + "$")}"\n')
    shell.wait_for("ready\r\n")
    shell.type("\x03")
    said = shell.wait_for(r"status 5")
    assert said.count("got INT\r\n") == 1
    shell.type("echo status=$? alive\n")
    shell.wait_for("status=5 alive")


@pytest.mark.parametrize("to", ["-$!", "$!"], ids=["group", "run"])
def test_a_signal_of_a_program_at_a_terminal_reaches_the_command_once(
    shell: Terminal, tmp_path: Path, to: str
) -> None:
    script = tmp_path / "script"
    script.write_text(COUNTING.replace("-lt 100", "-lt 12"))
    shell.type(f"{RUN} sh {script} &\n")
    shell.wait_for("\nready\r\n")
    shell.type(f"kill -TERM {to}; wait $!; echo status=$?\n")
    said = shell.wait_for(r"status=\d+\r\n")
    assert said.count("got TERM\r\n") == 1
    assert "status=0\r\n" in said


def test_the_second_key_kills(outer: Outer, shell: Terminal) -> None:
    shell.type(f'{RUN} sh -c "{COUNTING.replace("$", chr(92) + "$")}"\n')
    shell.wait_for("ready\r\n")
    shell.type("\x03")
    shell.wait_for("got INT\r\n")
    # Two at once are one to the kernel.
    time.sleep(0.3)
    shell.type("\x03")
    shell.wait_for(r"status 130")
    shell.type("echo status=$? alive\n")
    shell.wait_for("status=130 alive")


def test_a_shell_behind_the_link_is_as_good_as_any(shell: Terminal) -> None:
    shell.type(f"{RUN} bash --norc --noprofile -i\n")
    assert "job control" not in shell.wait_for(r"the server is at [\s\S]*\$ ")
    shell.type("sleep 100\n")
    time.sleep(0.3)
    shell.type("\x03")
    shell.wait_for(r"\^C[\s\S]*\$ ")
    shell.type("echo in$((1+1)) $NETEM_PROFILE\n")
    shell.wait_for("in2 clear")
    shell.type("sleep 100\n")
    time.sleep(0.3)
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("kill %1; sleep 0.1; exit 4\n")
    shell.wait_for("status 4")
    shell.wait_for(r"\$ ")
    # The terminal is the outer shell's again: its own jobs can be stopped and it reads on.
    shell.type("echo out$((2+2)) $?\n")
    shell.wait_for("out4 4")
    shell.type("sleep 100\n")
    time.sleep(0.3)
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("kill %1; echo over\n")
    shell.wait_for("over\r\n")


def test_a_run_is_stopped_and_continued_like_any_job(outer: Outer, shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c 'echo ready; sleep 0.6; echo end'\n")
    shell.wait_for("\nready\r\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    time.sleep(0.8)
    assert "end\r\n" not in shell.seen
    shell.type("fg\n")
    shell.wait_for("\nend\r\n")
    shell.wait_for("status 0")


def test_the_terminal_goes_away(outer: Outer, shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c 'echo ready; sleep 60'\n")
    shell.wait_for("\nready\r\n")
    os.close(shell.master)
    shell.master = os.open(os.devnull, os.O_RDONLY)
    assert eventually(lambda: not [each for each in outer.survivors() if "bash" not in each])


def test_ctrl_c_at_any_moment_of_the_start_is_no_traceback(outer: Outer) -> None:
    before = outer.state()
    moments = random.Random(5)
    for _ in range(6):
        run = outer.start("run", "clear", "--", "sleep", "60")
        time.sleep(moments.uniform(0.02, 0.6))
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=10)
        if run.returncode not in (130, -signal.SIGINT):
            # So early that it was Python's own start that it interrupted.
            assert run.returncode == 1
            assert "/netem/" not in err.decode()
        else:
            assert "Traceback" not in err.decode()
        assert eventually(lambda: not outer.survivors() and outer.state() == before)
