"""Programs of the lab in networks of its beds: started, spoken to by lines of JSON, ended."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import bench
from bench.lab.errors import LabFailedError
from bench.lab.interruption import Interruption
from netem.kernel.namespaces import Namespace
from netem.kernel.processes import PRIORITY, die_with_parent, run_first

__all__ = ["Program", "hear", "our_argv"]

# The caller's folder may hold a `random.py`, which `python -m` would take for the library's. The
# root is last: an installed package goes before a folder of its name beside it.
_BOOT: Final = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "import_module(sys.argv[2]).main(sys.argv[3:])"
)

_PRIORITY: Final = PRIORITY - 1
_MOST_WORDS: Final = 65_536


def our_argv(module: str, *arguments: str) -> list[str]:
    """The command that runs `main(arguments)` of a module of this clone."""
    root = str(Path(bench.__file__).parents[1])
    return [sys.executable, "-P", "-c", _BOOT, root, module, *arguments]


class Program:
    """It ends with `close`, and with this process; the terminal's keys do not reach it.

    What it writes to standard error stays in memory, for the word on its end.
    """

    def __init__(
        self, name: str, argv: Sequence[str], namespace: Namespace, fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self._words = os.memfd_create(f"lab-{name}", os.MFD_CLOEXEC)
        try:
            with namespace.entered():
                self.process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._words,
                    pass_fds=fds,
                    env=_environment(),
                    # Nothing of the caller's folder is looked at.
                    cwd="/",
                    start_new_session=True,
                    # Two system calls and no lock: safe beside the thread of a progress bar.
                    preexec_fn=die_with_parent,  # noqa: PLW1509
                )
        except OSError as error:
            os.close(self._words)
            raise LabFailedError(f"{name} cannot be started: {error.strerror}") from None
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self._begun = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def fileno(self) -> int:
        """Readable when it has said something, or has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def hurry(self) -> bool:
        """Let it run before ordinary processes, behind emulators; whether that is allowed.

        An ordinary one that an emulator pushes from its core waits there for milliseconds, until
        the kernel looks whether another core is free.
        """
        # Its threads, too: one of them looks up names for a handshake.
        threads = [int(each.name) for each in Path(f"/proc/{self.pid}/task").iterdir()]
        refusals = [run_first(thread, _PRIORITY) for thread in threads]
        return not any(refusals)

    def tell(self, order: dict[str, object]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.death() from None

    def answers(self) -> list[dict[str, Any]]:
        """Those that are there. `LabFailedError` if it has ended."""
        while True:
            try:
                piece = os.read(self.fileno(), 65_536)
            except BlockingIOError:
                break
            if not piece:
                raise self.death()
            self._begun += piece
        *lines, self._begun = self._begun.split(b"\n")
        return [json.loads(line) for line in lines]

    def words(self) -> list[str]:
        """Lines of its standard error."""
        size = os.fstat(self._words).st_size
        told = os.pread(self._words, _MOST_WORDS, max(0, size - _MOST_WORDS))
        return told.decode(errors="replace").splitlines()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise self.death()

    def death(self) -> LabFailedError:
        try:
            status: object = self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            status = "none yet"
        # What it logged, in JSON, is no word on its end.
        words = [line.strip() for line in self.words() if line.strip() and line[0] != "{"]
        last = words[-1] if words else "without a word"
        return LabFailedError(
            f"{self.name} has ended in mid-run (status {status}: {last[:200]})",
            remedy="what was measured before stands; start again",
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            # An order that it never read may still be in there.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        os.close(self._words)


def _environment() -> dict[str, str]:
    """Without what a user has set for his own commands: every run is the same."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")}


def hear(programs: Sequence[Program], interruption: Interruption, patience: float) -> None:
    """Wait until each has answered once, whatever it says."""
    waiting = set(programs)
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(interruption, selectors.EVENT_READ)
        for each in programs:
            selector.register(each, selectors.EVENT_READ)
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                names = ", ".join(sorted(each.name for each in waiting))
                raise LabFailedError(f"no word from {names} within {patience:g} s")
            for key, _ in selector.select(left):
                if isinstance(key.fileobj, Program) and key.fileobj.answers():
                    waiting.discard(key.fileobj)
            interruption.check()
