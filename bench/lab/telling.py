"""Progress on standard error: a bar on a terminal, lines anywhere else."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Column
from rich.text import Text

from tenuto.cli.place import shown

__all__ = ["BarTelling", "LineTelling", "Telling", "clock_time", "telling"]


def clock_time(seconds: float) -> str:
    """As `1:05`, to full seconds, or to five where it is far away; hours as `1:00:00`."""
    whole = round(seconds)
    if whole >= 30:
        whole = 5 * round(whole / 5)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Telling(Protocol):
    """Who watches."""

    def stage(self, what: str) -> None:
        """What is done now."""
        ...

    def progress(self, done: float, left: float) -> None:
        """The share that is done, and the seconds left."""
        ...

    def note(self, line: str) -> None:
        """Something to be seen afterwards, too."""
        ...


class AnyTelling(Telling, Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class LineTelling:
    """A line when something begins; where nobody listens, nothing is lost."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._left: float | None = None
        self._said = ""

    def stage(self, what: str) -> None:
        # Links are many, and of interest only to who waits for them.
        kind = what.partition(" ")[0] if what.startswith("making") else what
        if kind != self._said:
            left = "" if self._left is None else f" (about {clock_time(self._left)} left)"
            self.note(f"{what}{left}")
        self._said = kind

    def progress(self, done: float, left: float) -> None:
        self._left = left

    def note(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(f"lab: {shown(line)}", markup=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class _Left(ProgressColumn):
    def __init__(self) -> None:
        # A bar that takes two lines cannot be drawn over.
        super().__init__(Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        left = task.fields.get("left")
        return Text("" if left is None else f"about {clock_time(left)} left")


class BarTelling:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            _Left(),
            console=console,
            transient=True,
            # Each drawing costs what the flows may need.
            refresh_per_second=2,
        )
        self._task = self._bar.add_task("", total=1.0, left=None)

    def stage(self, what: str) -> None:
        with contextlib.suppress(OSError):
            self._bar.update(self._task, description=escape(shown(what)))

    def progress(self, done: float, left: float) -> None:
        with contextlib.suppress(OSError):
            self._bar.update(self._task, completed=done, left=left)

    def note(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(shown(line), markup=False)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._bar.stop()


def telling() -> AnyTelling:
    """For standard error, as it is."""
    console = Console(stderr=True, highlight=False)
    # On a dumb terminal nothing can be drawn over.
    drawn = console.is_terminal and not console.is_dumb_terminal
    return BarTelling(console) if drawn else LineTelling(console)
