"""The hand that holds an emulator: starts its process, asks it for counts, ends it."""

import copyreg
import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from netem.drivers.report import BedTally
from netem.emulator import RESTART, STOP, TALLY, read_only
from netem.errors import ImpairmentError
from netem.kernel.fresh import python_running
from netem.kernel.processes import parent_outlives_threads
from netem.profile import Profile

__all__ = ["Emulation"]

PATIENCE = 10.0
"""Seconds for an answer; the emulator gives it between two packets."""

LARGEST_ANSWER = 65_536


def _reduce(mapping: MappingProxyType[str, str]) -> tuple[object, tuple[dict[str, str]]]:
    return read_only, (dict(mapping),)


# Python pickles no read-only mapping, and a profile's sources are one.
copyreg.pickle(MappingProxyType, _reduce)  # type: ignore[arg-type]


class Emulation:
    """An emulator between two open descriptors, of which it has its own copies from now on."""

    def __init__(self, profile: Profile, seed: int, kind: str, client: int, server: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        self._control = ours
        self._words = os.memfd_create("netem-emulator")
        tied = "tied" if parent_outlives_threads() else "free"
        arguments = [str(theirs.fileno()), kind, str(client), str(server), tied]
        with theirs:
            self.process = self._start(arguments, [theirs.fileno(), client, server])
        try:
            self._hand_over(profile, seed)
            self._unscheduled = self._answer()["unscheduled"]
        except BaseException:
            self.close()
            raise

    def _start(self, arguments: list[str], fds: Sequence[int]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                python_running("netem.emulator", *arguments),
                pass_fds=fds,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._words,
                start_new_session=True,
            )
        except OSError as error:
            raise ImpairmentError(
                f"The emulator cannot be started: {sys.executable}: {error.strerror}."
            ) from None

    def _hand_over(self, profile: Profile, seed: int) -> None:
        assert self.process.stdin is not None
        try:
            with self.process.stdin as pipe:
                pipe.write(pickle.dumps((profile, seed)))
        except BrokenPipeError:
            raise self._death() from None

    def fileno(self) -> int:
        """Readable when the emulator is gone."""
        return self._control.fileno()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise self._death()

    def restart(self) -> None:
        self._ask(RESTART)

    def tally(self) -> BedTally:
        return self._ask(TALLY)

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self._control.fileno() < 0:
            return
        try:
            self._ask(STOP)
        except ImpairmentError:
            self.process.kill()
        self._control.close()
        self.process.wait()
        os.close(self._words)

    def _ask(self, order: bytes) -> BedTally:
        try:
            self._control.send(order)
        except OSError:
            raise self._death() from None
        told = self._answer()
        return BedTally.from_json({**told, "unscheduled": self._unscheduled})

    def _answer(self) -> dict[str, Any]:
        try:
            message = self._control.recv(LARGEST_ANSWER)
        except TimeoutError:
            self.process.kill()
            raise ImpairmentError(
                f"The emulator gave no answer in {PATIENCE:g} s: the path cannot be trusted."
            ) from None
        except OSError:
            message = b""
        if not message:
            raise self._death()
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _death(self) -> ImpairmentError:
        try:
            status: object = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "none"
        words = os.pread(self._words, LARGEST_ANSWER, 0).decode(errors="replace").split("\n")
        last = next((line for line in reversed(words) if line.strip()), "without a word")
        return ImpairmentError(
            f"The emulator is gone (status {status}: {last.strip()[:200]}): "
            "from then on nothing passed."
        )
