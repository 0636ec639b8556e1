"""A command beside a UDP relay: no privileges, any system, no containment."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from netem.cli.conducting import SignalWatch, conduct
from netem.cli.request import Request
from netem.cli.streams import say
from netem.cli.summary import Outcome
from netem.cli.terminal import kept_terminal
from netem.drivers.relay import CANNOT_SHOW, Relay
from netem.drivers.report import BedTally
from netem.kernel.contained import NOT_EXECUTABLE, NOT_FOUND
from netem.kernel.processes import die_with_parent

__all__ = ["run_behind_relay"]

LOOK: Final = 0.05

Report = Callable[[Outcome], None]


def run_behind_relay(request: Request, report: Report) -> int:
    """The command's status, once its outcome is reported."""
    assert request.relay_to is not None
    with contextlib.ExitStack() as undo:
        watch = undo.enter_context(_watch())
        terminal = undo.enter_context(_terminal())
        relay = undo.enter_context(Relay(request.profile, request.seed, request.relay_to))
        address = _text(*relay.address)
        say(
            f"netem: {request.profile.name}, seed {request.seed}: a relay of UDP to "
            f"{_text(*request.relay_to)} is at {address}"
        )
        started = time.monotonic()
        command = _Plain(request, address, relay.address[1], watch, terminal=terminal)
        undo.callback(command.close)
        status = _wait_for(command, watch)
        report(
            Outcome(
                profile=request.profile,
                seed=request.seed,
                driver="relay",
                status=status,
                seconds=time.monotonic() - started,
                tally=BedTally(path=relay.tally()),
                notes=tuple(f"not shown by a relay: {what}" for what in CANNOT_SHOW),
            )
        )
        return status


def _text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Plain:
    """A child as every system has it; in a process group of its own, unless at a terminal."""

    def __init__(
        self,
        request: Request,
        address: str,
        port: int,
        watch: SignalWatch | None,
        *,
        terminal: bool,
    ) -> None:
        self._terminal = terminal
        env = {
            **os.environ,
            "NETEM_PROFILE": request.profile.name,
            "NETEM_SEED": str(request.seed),
            "NETEM_SERVER": address,
            "NETEM_PORT": str(port),
        }
        self._status = 0
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                request.command,
                env=env,
                # Runs after a fork of a process whose other thread holds no lock that it takes.
                preexec_fn=None if watch is None else lambda: _settle(watch),  # noqa: PLW1509
                process_group=None if terminal or watch is None else 0,
            )
        except FileNotFoundError:
            self._fail(f"{request.command[0]}: not found", NOT_FOUND)
        except OSError as error:
            self._fail(f"{request.command[0]}: {error.strerror}", NOT_EXECUTABLE)

    def _fail(self, words: str, status: int) -> None:
        say(f"netem: {words}")
        self._status = status

    def heard(self, number: int, *, of_terminal: bool) -> bool:
        del number
        return of_terminal and self._terminal

    def poll(self) -> int | None:
        return self._status if self._process is None else _as_status(self._process.poll())

    def wait(self) -> int:
        if self._process is None:
            return self._status
        status = _as_status(self._process.wait())
        assert status is not None
        return status

    def send(self, number: int) -> None:
        if self._process is None:
            return
        if self._terminal:
            self._process.send_signal(number)
        elif self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        self.kill()
        self.wait()


def _settle(watch: SignalWatch) -> None:
    if sys.platform == "linux":
        die_with_parent()
    signal.pthread_sigmask(signal.SIG_SETMASK, watch.before)


def _as_status(code: int | None) -> int | None:
    return code if code is None or code >= 0 else 128 - code


def _watch() -> contextlib.AbstractContextManager[SignalWatch | None]:
    """None where signals cannot be waited for, as on macOS and Windows."""
    return SignalWatch() if hasattr(signal, "sigtimedwait") else contextlib.nullcontext()


def _terminal() -> contextlib.AbstractContextManager[bool]:
    return kept_terminal() if hasattr(os, "tcgetpgrp") else contextlib.nullcontext(True)


def _wait_for(command: _Plain, watch: SignalWatch | None) -> int:
    if watch is not None:
        return conduct(command, watch, lambda: None)
    return _wait_plainly(command)


def _wait_plainly(command: _Plain) -> int:
    """The command hears the terminal itself; the second Ctrl-C kills it."""
    caught = 0

    def count(_number: int, _frame: FrameType | None) -> None:
        nonlocal caught
        caught += 1
        if caught > 1:
            command.kill()

    before = signal.signal(signal.SIGINT, count)
    try:
        while (status := command.poll()) is None:
            time.sleep(LOOK)
    finally:
        signal.signal(signal.SIGINT, before)
    return 130 if caught > 1 else status
