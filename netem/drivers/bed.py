"""Two hosts with a path between them: what the drivers that need Linux have in common."""

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from netem.drivers.report import BedTally
from netem.kernel.namespaces import Namespace
from netem.kernel.processes import die_with_parent, parent_outlives_threads
from netem.profile import Profile

__all__ = ["Bed", "Host"]


@dataclass(slots=True, kw_only=True)
class Host:
    """One end of the path."""

    namespace: Namespace
    interface: str
    ipv4: str
    ipv6: str
    """Empty where the kernel has no IPv6."""
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def entered(self) -> contextlib.AbstractContextManager[None]:
        """This thread is on this host meanwhile: sockets made now stay here."""
        return self.namespace.entered()

    def popen(
        self,
        argv: Sequence[str],
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a program here. It ends with the bed, and with this process."""
        with self.entered():
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                pass_fds=pass_fds,
                # Two system calls and no lock: safe beside threads, too.
                preexec_fn=die_with_parent if parent_outlives_threads() else None,  # noqa: PLW1509
            )
        self._started = [old for old in self._started if old.poll() is None]
        self._started.append(process)
        return process

    def end_programs(self) -> None:
        """Those that `popen` started here and that have not ended."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._started.clear()


class Bed(Protocol):
    """Two hosts and what is between them, until `close`."""

    @property
    def client(self) -> Host: ...

    @property
    def server(self) -> Host: ...

    def restart(self, profile: Profile | None = None, seed: int | None = None) -> None:
        """Begin the conditions, their seed and all counts anew; what is under way is gone.

        What is not given stays as it was. ImpairmentError for what the driver cannot do.
        """
        ...

    def check(self) -> None:
        """ImpairmentError if the path is no longer what it should be."""
        ...

    def tally(self) -> BedTally: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
