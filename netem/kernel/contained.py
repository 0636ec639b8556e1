"""A program and all that it ever starts, in a pid namespace that ends with it and with us.

Three processes: a keeper, our child, that makes the namespace; its init, that reaps and passes
signals on; the program. Each dies with the one before it, and with init the kernel ends everything
in the namespace, also what has made itself a daemon.
"""

import contextlib
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from netem.errors import ImpairmentError
from netem.kernel.libc import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    mount,
    setns,
    unshare,
)
from netem.kernel.namespaces import Namespace, map_ids
from netem.kernel.processes import die_with_parent
from netem.kernel.signals import FORWARDED

__all__ = ["NOT_EXECUTABLE", "NOT_FOUND", "Contained", "Program"]

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_REC, _MS_SLAVE = 0x4000, 0x8_0000

WITNESS: Final = 0.05
"""Seconds in which the keeper has got what was sent to it and to us at once."""

_STATUS: Final = struct.Struct("i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    argv: Sequence[str]
    env: Mapping[str, str]
    own_group: bool
    """Apart from our process group, so that signals reach it through us alone.

    At a terminal it shares ours instead: the terminal's keys then mean both, and shells and their
    job control work as if we were not there.
    """
    user: tuple[int, int] | None = None
    """In a user namespace of our making: who to be again, user and group."""
    quiet: bool = False
    """Standard input is empty, and standard output goes to standard error."""
    mask: frozenset[signal.Signals | int] = frozenset()
    """Signals that it shall find blocked."""


class Contained:
    def __init__(self, program: Program, namespace: Namespace | None) -> None:
        """In this network, None: in our own."""
        self.program = program
        self.init = 0
        self._report, report = os.pipe()
        self._witness, witness = os.pipe()
        told, tell = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self.keeper = os.fork()
        if self.keeper == 0:
            _keep(program, namespace, _Pipes(report, tell, witness), parent)
        os.close(report)
        os.close(witness)
        os.close(tell)
        try:
            self.init = self._learn(told)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(told)

    def _learn(self, told: int) -> int:
        """The pid of init, or why there is none."""
        message = b""
        while piece := os.read(told, 4096):
            message += piece
        word, _, rest = message.decode(errors="replace").partition(" ")
        if word == "init":
            return int(rest)
        raise ImpairmentError(f"No pid namespace for the command: {rest or 'it was killed'}.")

    def heard(self, number: int, *, of_terminal: bool) -> bool:
        """Whether a signal that we got has reached the program, too: sent to our whole group.

        The keeper is of that group, and tells what it got.
        """
        if self.program.own_group or of_terminal:
            return not self.program.own_group
        deadline = time.monotonic() + WITNESS
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._witness], (), (), left)[0]:
                told = os.read(self._witness, 64)
                if number in told:
                    return True
                if not told:
                    break
        return False

    def poll(self) -> int | None:
        """The program's status as a shell has it, once it and all it started are gone."""
        if self.keeper == 0:
            return self._status
        pid, _ = os.waitpid(self.keeper, os.WNOHANG)
        if pid == 0:
            return None
        self._ended()
        return self._status

    def wait(self) -> int:
        if self.keeper != 0:
            os.waitpid(self.keeper, 0)
            self._ended()
        return self._status

    def _ended(self) -> None:
        self.keeper = 0
        said = os.read(self._report, _STATUS.size)
        os.close(self._report)
        os.close(self._witness)
        # Without a word init was killed, and the program with it.
        self._status: int = _STATUS.unpack(said)[0] if said else 128 + signal.SIGKILL

    def send(self, number: int) -> None:
        """To the program, and its process group if that is its own."""
        if self.keeper != 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, number)

    def kill(self) -> None:
        """All of it, at once."""
        if self.keeper != 0:
            # The keeper goes once init has, and init once nothing is left in there.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init or self.keeper, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        self.wait()


class _Pipes(NamedTuple):
    """What the keeper writes to."""

    report: int
    tell: int
    witness: int


def _keep(program: Program, namespace: Namespace | None, pipes: _Pipes, parent: int) -> NoReturn:
    """The keeper: nothing of it may return into the code that forked it."""
    report, tell, witness = pipes
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
        die_with_parent()
        if os.getppid() != parent:
            # It had gone before we were tied to it.
            os._exit(0)
        if namespace is not None:
            setns(namespace.fd, CLONE_NEWNET)
        unshare(CLONE_NEWPID | CLONE_NEWNS)
        held, lifeline = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(lifeline)
            os.close(tell)
            os.close(witness)
            _run_init(program, report, held)
        os.close(report)
        if program.own_group:
            os.setpgid(0, 0)
        os.write(tell, f"init {init}".encode())
        os.close(tell)
        _witness_until_end(init, witness)
    except OSError as error:
        os.write(tell, f"error {error.strerror}".encode())
    finally:
        os._exit(0)


def _witness_until_end(init: int, witness: int) -> None:
    while os.waitpid(init, os.WNOHANG) == (0, 0):
        caught = signal.sigwait(FORWARDED | {signal.SIGCHLD})
        if caught != signal.SIGCHLD:
            os.write(witness, bytes([caught]))


def _run_init(program: Program, report: int, held: int) -> NoReturn:
    """Pid 1: start the program, pass signals on to it, reap, say how it ended."""
    try:
        die_with_parent()
        if select.select([held], (), (), 0)[0]:
            # Readable means closed: the keeper had gone before we were tied to it.
            os._exit(0)
        _mount_proc()
        signals = FORWARDED | {signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        child = os.fork()
        if child == 0:
            _execute(program)
        # What the terminal says to our old group is not for us to pass on once more.
        os.setpgid(0, 0)
        status = _tend(child, signals, whole_group=program.own_group)
        os.write(report, _STATUS.pack(status))
    except OSError as error:
        _say(f"netem: {program.argv[0]}: {error.strerror}")
        os.write(report, _STATUS.pack(NOT_EXECUTABLE))
    finally:
        os._exit(0)


def _mount_proc() -> None:
    """So that the pids there are those in here."""
    # Refused in a container that hides parts of /proc, or in a chroot; then the outer pids are
    # to be seen.
    with contextlib.suppress(OSError):
        mount("none", "/", None, _MS_REC | _MS_SLAVE)
        mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _tend(child: int, signals: frozenset[signal.Signals], *, whole_group: bool) -> int:
    while True:
        caught = signal.sigwait(signals)
        if caught != signal.SIGCHLD:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-child if whole_group else child, caught)
            continue
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if pid == 0:
                break


def _execute(program: Program) -> NoReturn:
    """Become the program, with nothing of ours about it."""
    name = program.argv[0]
    try:
        if program.own_group:
            os.setpgid(0, 0)
        if program.quiet:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
        if program.user is not None:
            _be(program.user)
        # What Python had changed at its start.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, program.mask)
        os.execvpe(name, list(program.argv), dict(program.env))
    except FileNotFoundError:
        _say(f"netem: {name}: not found")
        os._exit(NOT_FOUND)
    except OSError as error:
        _say(f"netem: {name}: {error.strerror}")
        os._exit(NOT_EXECUTABLE)
    finally:
        os._exit(NOT_EXECUTABLE)


def _be(user: tuple[int, int]) -> None:
    """The user that we were before the namespace in which we are root."""
    # Without it the program only has another name for itself: its files are its own either way.
    with contextlib.suppress(OSError):
        unshare(CLONE_NEWUSER)
        map_ids(inside=user, outside=(0, 0))


def _say(line: str) -> None:
    os.write(2, f"{line}\n".encode())
