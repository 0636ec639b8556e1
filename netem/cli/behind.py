"""A command on the client of a bed, its server beside us or on the bed's server."""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Final

from netem.cli.choosing import make_bed
from netem.cli.conducting import SignalWatch, conduct
from netem.cli.request import BY_KERNEL, Request, ServeOrder
from netem.cli.serving import InterruptedWaitError, end_server, wait_until_ready
from netem.cli.streams import say
from netem.cli.summary import Outcome
from netem.cli.terminal import kept_terminal
from netem.drivers.bed import Bed
from netem.errors import ImpairmentError
from netem.kernel.contained import Contained, Program
from netem.kernel.interfaces import set_sysctl
from netem.kernel.namespaces import Namespace
from netem.kernel.power import ensure_power

__all__ = ["run_behind_bed"]

SHELL: Final = "/bin/sh"

NO_SEED: Final = "the kernel draws without a seed: the same fates never come twice"

Report = Callable[[Outcome], None]


def run_behind_bed(request: Request, report: Report) -> int:
    """The command's status, once its outcome is reported."""
    user = (os.geteuid(), os.getegid())
    in_user_namespace = ensure_power(own_network=request.serve is not None)
    with contextlib.ExitStack() as undo:
        home = undo.enter_context(Namespace.current())
        driver, bed = make_bed(
            request.driver,
            request.profile,
            request.seed,
            server=None if request.serve else home,
            congestion=request.congestion,
            localhost=request.localhost,
        )
        undo.callback(bed.close)
        _allow_ping(bed)
        terminal = undo.enter_context(kept_terminal())
        watch = undo.enter_context(SignalWatch())
        run = _Run(request, bed, watch, user if in_user_namespace else None)
        try:
            if request.serve is not None:
                run.serve(request.serve, undo)
            status, seconds = run.command(undo, terminal=terminal)
        except InterruptedWaitError as interrupted:
            return 128 + interrupted.number
        report(
            Outcome(
                profile=request.profile,
                seed=request.seed,
                driver=driver,
                status=status,
                seconds=seconds,
                tally=bed.tally(),
                notes=(*run.notes(), *((NO_SEED,) if driver in BY_KERNEL else ())),
            )
        )
        return status


class _Run:
    def __init__(
        self, request: Request, bed: Bed, watch: SignalWatch, user: tuple[int, int] | None
    ) -> None:
        self._request = request
        self._bed = bed
        self._watch = watch
        self._user = user
        self._server: Contained | None = None

    def serve(self, order: ServeOrder, undo: contextlib.ExitStack) -> None:
        host = self._bed.server
        server = Contained(
            Program(
                argv=(SHELL, "-c", order.line),
                env=self._environment(),
                own_group=True,
                user=self._user,
                quiet=True,
                mask=frozenset(self._watch.before),
            ),
            host.namespace,
        )
        undo.callback(end_server, server)
        self._server = server
        wait_until_ready(server, host.namespace, order.port, order.patience, self._watch)

    def command(self, undo: contextlib.ExitStack, *, terminal: bool) -> tuple[int, float]:
        """Its status, and how long it took."""
        bed, request = self._bed, self._request
        _announce(request, bed)
        # The profile's time begins with the command, and so do the counts.
        bed.restart()
        started = time.monotonic()
        command = Contained(
            Program(
                argv=request.command,
                env=self._environment(),
                own_group=not terminal,
                user=self._user,
                mask=frozenset(self._watch.before),
            ),
            bed.client.namespace,
        )
        undo.callback(command.close)
        status = conduct(command, self._watch, bed.check)
        return status, time.monotonic() - started

    def notes(self) -> tuple[str, ...]:
        """What the server's side had to do with it."""
        status = None if self._server is None else self._server.poll()
        if status is None:
            return ()
        return (f"warning: the server had ended before the command did, with status {status}",)

    def _environment(self) -> dict[str, str]:
        bed, request = self._bed, self._request
        said = {
            "NETEM_PROFILE": request.profile.name,
            "NETEM_SEED": str(request.seed),
            "NETEM_SERVER": "127.0.0.1" if request.localhost else bed.server.ipv4,
            "NETEM_SERVER6": bed.server.ipv6,
            "NETEM_CLIENT": bed.client.ipv4,
            "NETEM_CLIENT6": bed.client.ipv6,
        }
        return {**os.environ, **said}


def _allow_ping(bed: Bed) -> None:
    """To the command without privileges, too: nobody else is in that network."""
    with contextlib.suppress(ImpairmentError):
        group = os.getegid()
        set_sysctl(bed.client.namespace, "ipv4/ping_group_range", f"{group} {group}")


def _announce(request: Request, bed: Bed) -> None:
    where = "127.0.0.1" if request.localhost else bed.server.ipv4
    also = f" and {bed.server.ipv6}" if bed.server.ipv6 else ""
    say(f"netem: {request.profile.name}, seed {request.seed}: the server is at {where}{also}")
