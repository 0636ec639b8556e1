"""A command beside a UDP relay: no privileges, any system, contained where that is possible."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Final, Protocol

from netem.cli.conducting import Running, SignalWatch, conduct
from netem.cli.request import Request
from netem.cli.streams import say
from netem.cli.summary import Outcome
from netem.cli.terminal import kept_terminal
from netem.drivers.relay import CANNOT_SHOW, Relay
from netem.drivers.relaying import RelayCounts
from netem.errors import ImpairmentError
from netem.kernel.contained import NOT_EXECUTABLE, NOT_FOUND, Contained, Program
from netem.kernel.processes import die_with_parent

__all__ = ["run_behind_relay"]

LOOK: Final = 0.05

UNCONTAINED: Final = "not contained: what the command leaves behind goes on"

Report = Callable[[Outcome], None]


def run_behind_relay(request: Request, report: Report) -> int:
    """The command's status, once its outcome is reported."""
    assert request.relay_to is not None
    with contextlib.ExitStack() as undo:
        watch = undo.enter_context(_watch())
        terminal = undo.enter_context(_terminal())
        relay = Relay(request.profile, request.seed, request.relay_to)
        address = _text(*relay.address)
        say(
            f"netem: {request.profile.name}, seed {request.seed}: a relay of UDP to "
            f"{_text(*request.relay_to)} is at {address}"
        )
        started = time.monotonic()
        # Before the relay has a thread: what is sent to it meanwhile waits in its socket.
        command, notes = _start(request, _environment(request, relay), watch, terminal=terminal)
        undo.callback(command.close)
        undo.enter_context(relay)
        status = _wait_for(command, watch)
        report(
            Outcome(
                profile=request.profile,
                seed=request.seed,
                driver="relay",
                status=status,
                seconds=time.monotonic() - started,
                tally=relay.bed_tally(),
                notes=(
                    *notes,
                    *_seen(relay.counts()),
                    *(f"not shown by a relay: {what}" for what in CANNOT_SHOW),
                ),
            )
        )
        return status


def _seen(counts: RelayCounts) -> Iterator[str]:
    if counts.refused:
        yield f"relay: {counts.refused} ICMP errors from the server's side; is anybody there?"
    if counts.evicted:
        yield f"warning: {counts.evicted} sockets were closed early, for there were too many flows"


def _text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _environment(request: Request, relay: Relay) -> dict[str, str]:
    return {
        **os.environ,
        "NETEM_PROFILE": request.profile.name,
        "NETEM_SEED": str(request.seed),
        "NETEM_SERVER": _text(*relay.address),
        "NETEM_PORT": str(relay.address[1]),
    }


def _start(
    request: Request, env: dict[str, str], watch: SignalWatch | None, *, terminal: bool
) -> tuple["_Command", tuple[str, ...]]:
    """The command, and what there is to say about it."""
    if sys.platform != "linux" or watch is None:
        return _Plain(request.command, env, watch, terminal=terminal), (UNCONTAINED,)
    program = Program(
        argv=request.command, env=env, own_group=not terminal, mask=frozenset(watch.before)
    )
    try:
        return Contained(program, None), ()
    except ImpairmentError:
        return _Plain(request.command, env, watch, terminal=terminal), (UNCONTAINED,)


class _Command(Running, Protocol):
    def close(self) -> None: ...


class _Plain:
    """A child as every system has it; in a process group of its own, unless at a terminal."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        watch: SignalWatch | None,
        *,
        terminal: bool,
    ) -> None:
        self._terminal = terminal
        self._own_group = watch is not None and not terminal
        self._status = 0
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                argv,
                env=env,
                # Runs after a fork of a process whose other thread holds no lock that it takes.
                preexec_fn=None if watch is None else lambda: _settle(watch),  # noqa: PLW1509
                process_group=0 if self._own_group else None,
            )
        except FileNotFoundError:
            self._fail(f"{argv[0]}: not found", NOT_FOUND)
        except OSError as error:
            self._fail(f"{argv[0]}: {error.strerror}", NOT_EXECUTABLE)

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
        if self._process is None or self._process.poll() is not None:
            return
        if self._own_group:
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
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


def _wait_for(command: _Command, watch: SignalWatch | None) -> int:
    if watch is not None:
        return conduct(command, watch, lambda: None)
    return _wait_plainly(command)


def _wait_plainly(command: _Command) -> int:
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
