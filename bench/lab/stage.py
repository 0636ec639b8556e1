"""The servers' side of a run: one network with the product's server and the reference server."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from typing import Final

from bench.lab.certificates import Certificates
from bench.lab.errors import LabFailedError
from bench.lab.interruption import Interruption
from bench.lab.listening.ask import HOST, PRODUCT_PORT
from bench.lab.programs import Program, hear, our_argv
from netem.kernel.interfaces import configure
from netem.kernel.namespaces import Namespace

__all__ = ["Stage"]

_READY_WITHIN: Final = 20.0
_ANSWER_WITHIN: Final = 10.0
_DOORS: Final = 2


class Stage:
    """Both servers are started at once; `wait` for them before anybody listens."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self.first = False
        """Whether senders and receivers run before all ordinary processes."""
        with contextlib.ExitStack() as undo:
            self.network = Namespace.new()
            undo.callback(self.network.close)
            configure(self.network, ["link set dev lo up"])
            self.certificates = Certificates()
            undo.callback(self.certificates.close)
            self._product = Program("the product's server", self._product_argv(), *self._in())
            undo.callback(self._product.close)
            pair = self.certificates
            self._reference = Program(
                "the reference server",
                our_argv(
                    "bench.lab.reference.server", pair.path(pair.certificate), pair.path(pair.key)
                ),
                *self._in(),
            )
            undo.callback(self._reference.close)
            self._undo = undo.pop_all()

    def _in(self) -> tuple[Namespace, list[int]]:
        return self.network, [self.certificates.certificate, self.certificates.key]

    def _product_argv(self) -> list[str]:
        pair = self.certificates
        options = ["--host", HOST, "--port", str(PRODUCT_PORT), "--log", "json", "--test-sources"]
        options += ["--cert", pair.path(pair.certificate), "--key", pair.path(pair.key)]
        return [sys.executable, "-P", "-m", "quicserver", *options]

    @property
    def programs(self) -> Sequence[Program]:
        return (self._product, self._reference)

    def wait(self) -> None:
        """Until they serve."""
        hear([self._reference], self._interruption, _READY_WITHIN)
        deadline = time.monotonic() + _READY_WITHIN
        while self._doors() < _DOORS:
            self._product.check()
            self._interruption.check()
            if time.monotonic() > deadline:
                raise LabFailedError(f"the product's server is not up in {_READY_WITHIN:g} s")
            time.sleep(0.02)

    def _doors(self) -> int:
        return sum('"DoorOpened"' in line for line in self._product.words())

    def check(self) -> None:
        for each in self.programs:
            each.check()

    def rest(self) -> float:
        """Between two waves: the worst lateness of a frame at the reference server."""
        self._reference.tell({"rest": True})
        answers: list[dict[str, float]] = []
        deadline = time.monotonic() + _ANSWER_WITHIN
        while not answers:
            if time.monotonic() > deadline:
                raise LabFailedError(f"no word from {self._reference.name}")
            time.sleep(0.005)
            answers = self._reference.answers()
        return answers[-1]["send_lag"]

    def close(self) -> None:
        self._undo.close()
