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

from netem.drivers.report import BedTally, Drops
from netem.emulator import CHANGE, DROPS, RESTART, STOP, TALLY, read_only
from netem.errors import ImpairmentError
from netem.kernel.fresh import python_running
from netem.kernel.parcels import open_parcel, parcel
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
        self._set_up = (profile, seed)
        self._ready = False
        try:
            self._hand_over()
            self._unscheduled = self._answer()["unscheduled"]
            self._ready = True
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

    def _hand_over(self) -> None:
        assert self.process.stdin is not None
        try:
            with self.process.stdin as pipe:
                pipe.write(pickle.dumps(self._set_up))
        except BrokenPipeError:
            raise self._death() from None

    def fileno(self) -> int:
        """Readable when the emulator is gone."""
        return self._control.fileno()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise self._death()

    def restart(self, profile: Profile | None = None, seed: int | None = None) -> None:
        """What is not given stays as it was."""
        self._begin(RESTART, profile, seed)

    def change(self, profile: Profile, seed: int | None = None) -> None:
        self._begin(CHANGE, profile, seed)

    def _begin(self, order: bytes, profile: Profile | None, seed: int | None) -> None:
        before = self._set_up
        self._set_up = (
            before[0] if profile is None else profile,
            before[1] if seed is None else seed,
        )
        fd = parcel(pickle.dumps(self._set_up))
        try:
            self._ask(order, [fd])
        finally:
            os.close(fd)

    def tally(self) -> BedTally:
        return self._ask(TALLY)

    def drops(self) -> Drops:
        self._order(DROPS)
        _, fds = self._receive()
        return Drops.from_json(json.loads(open_parcel(fds[0])))

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self._control.fileno() < 0:
            return
        if not self._stopped():
            self.process.kill()
        self._control.close()
        self.process.wait()
        os.close(self._words)

    def _stopped(self) -> bool:
        """It was told to, and has answered."""
        if not self._ready:
            return False  # Its first word may be under way, or never come.
        try:
            self._ask(STOP)
        except ImpairmentError:
            return False
        return True

    def _ask(self, order: bytes, fds: Sequence[int] = ()) -> BedTally:
        self._order(order, fds)
        told = self._answer()
        return BedTally.from_json({**told, "unscheduled": self._unscheduled})

    def _order(self, order: bytes, fds: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._control, [order], fds)
        except OSError:
            raise self._death() from None

    def _answer(self) -> dict[str, Any]:
        message, _ = self._receive()
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _receive(self) -> tuple[bytes, list[int]]:
        """A message, and the descriptors that came with it: the caller's to close."""
        fds: list[int] = []
        try:
            message, fds, _, _ = socket.recv_fds(self._control, LARGEST_ANSWER, 1)
        except TimeoutError:
            self.process.kill()
            raise ImpairmentError(
                f"The emulator gave no answer in {PATIENCE:g} s: the path cannot be trusted."
            ) from None
        except OSError:
            message = b""
        if not message:
            raise self._death()
        return message, fds

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
