"""`tenuto lab` as its user starts it, in a network of the test's own."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.lab.folder import REPORT, RESULTS
from bench.lab.record import Results
from tests.docs.pages import ROOT
from tests.netem.outer import MARK, Outer

__all__ = ["LabRun"]

_PATIENCE = 90.0


@dataclass(slots=True)
class LabRun:
    """It has begun; `until` waits for a word of it on standard error."""

    outer: Outer
    folder: Path
    arguments: Sequence[str]
    before: Sequence[str] = ()
    process: subprocess.Popen[bytes] = field(init=False)
    told: str = ""

    def __post_init__(self) -> None:
        lab = [sys.executable, "-P", "-m", "bench.lab", "--output", str(self.folder)]
        environment = {**os.environ, MARK: self.outer.mark, "PYTHONPATH": str(ROOT)}
        with self.outer.namespace.entered():
            self.process = subprocess.Popen(
                [*self.before, *lab, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )

    def until(self, word: str) -> None:
        assert self.process.stderr is not None
        deadline = time.monotonic() + _PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stderr, selectors.EVENT_READ)
            while word not in self.told:
                assert selector.select(deadline - time.monotonic()), f"never said: {word}"
                piece = os.read(self.process.stderr.fileno(), 4096)
                assert piece, f"it ended without {word!r}: {self.told}"
                self.told += piece.decode()

    def end(self) -> int:
        """Wait for it; its exit status."""
        try:
            out, err = self.process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.told += err.decode()
        self.out = out.decode()
        assert "Traceback" not in self.told
        return self.process.returncode

    out: str = ""

    def completed(self) -> Results:
        """All that it measured, to the end; its status says whether all of it counts."""
        status, results = self.end(), self.results
        assert results is not None, self.told
        assert results.complete, self.told
        # A busy machine is no fault of the lab's.
        assert status == bool(results.void_profiles()), self.told
        return results

    @property
    def results(self) -> Results | None:
        """Of the file, if there is one."""
        path = self.folder / RESULTS
        if not path.exists():
            return None
        return Results.from_json(path.read_text(encoding="utf-8"), str(path))

    @property
    def report(self) -> str:
        return (self.folder / REPORT).read_text(encoding="utf-8")
