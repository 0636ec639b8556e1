"""Any source in another rate and channel count."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from tenuto.convert import Converter
from tenuto.errors import SourceError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE, Mark, Source
from tenuto.sources.formats import Wanted

__all__ = ["ConvertedSource", "converted"]


def converted(source: Source, wanted: Wanted) -> Source:
    """The source itself, where it is what was wanted."""
    target = wanted.of(source.format)
    return source if target == source.format else ConvertedSource(source, target)


class ConvertedSource:
    """`source` as `target` has it, from its first byte to its last.

    A mark comes before the output sample that stands for the one it came before. Where the
    source changes its format, the target stays. Raises as `Converter` does.
    """

    def __init__(self, source: Source, target: AudioFormat) -> None:
        self._source = source
        self.format = target
        self._part = _Part(source.format, target)

    @property
    def kind(self) -> str:
        return self._source.kind

    @property
    def pausable(self) -> bool:
        return self._source.pausable

    @property
    def patience(self) -> float | None:
        return self._source.patience

    async def stream(self) -> AsyncGenerator[bytes | Mark, None]:
        failure: SourceError | None = None
        try:
            async with aclosing(self._source.stream()) as items:
                async for item in items:
                    for each in self._take(item):
                        yield each
        except SourceError as error:
            failure = error
        # Also before a failure: what the filter still holds was produced.
        for each in self._part.finish():
            yield each
        if failure is not None:
            raise failure

    def _take(self, item: bytes | Mark | AudioFormat) -> Iterator[bytes | Mark]:
        match item:
            case Mark():
                self._part.mark(item)
            case AudioFormat():
                yield from self._part.finish()
                self._part = _Part(item, self.format)
            case _:
                yield from self._part.push(item)


class _Part:
    """What is of one format: its converter, and the marks whose sound is not out yet."""

    def __init__(self, source: AudioFormat, target: AudioFormat) -> None:
        self._converter = Converter(source, target)
        self._size = source.bytes_per_sample
        self._target = target
        self._taken = 0
        self._given = 0
        self._marks: deque[tuple[int, Mark]] = deque()
        most = MAX_RUN_SIZE // target.bytes_per_sample * source.rate // target.rate
        self._most = max(1, most) * self._size

    def mark(self, mark: Mark) -> None:
        position = self._converter.position(self._taken // self._size)
        self._marks.append((position * self._target.bytes_per_sample, mark))

    def push(self, run: bytes) -> Iterator[bytes | Mark]:
        # A run of one format can be many of another: it is converted as it is asked for.
        for first in range(0, len(run), self._most):
            piece = run[first : first + self._most]
            self._taken += len(piece)
            yield from self._give(self._converter.push(piece))

    def finish(self) -> Iterator[bytes | Mark]:
        yield from self._give(self._converter.finish())
        while self._marks:
            yield self._marks.popleft()[1]

    def _give(self, run: bytes) -> Iterator[bytes | Mark]:
        while run:
            while self._marks and self._marks[0][0] <= self._given:
                yield self._marks.popleft()[1]
            cut = MAX_RUN_SIZE
            if self._marks:
                cut = min(cut, self._marks[0][0] - self._given)
            self._given += min(cut, len(run))
            yield run[:cut]
            run = run[cut:]
