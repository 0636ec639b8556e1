"""What the tests of all sources share: reading one to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenuto.media import AudioFormat
from tenuto.sources import MAX_RUN_SIZE, Mark, Source


@dataclass(slots=True)
class Heard:
    """A whole stream: its bytes, its run sizes, and (text offset, byte position) marks; also
    the changes of format at their byte positions.
    """

    audio: bytes = b""
    runs: list[int] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)
    formats: list[tuple[AudioFormat, int]] = field(default_factory=list)


async def hear(source: Source) -> Heard:
    """Read a source to its end."""
    heard = Heard()
    parts = []
    position = 0
    async for item in source.stream():
        if isinstance(item, Mark):
            heard.marks.append((item.text_offset, position))
            continue
        if isinstance(item, AudioFormat):
            heard.formats.append((item, position))
            continue
        assert 0 < len(item) <= MAX_RUN_SIZE
        heard.runs.append(len(item))
        parts.append(item)
        position += len(item)
    heard.audio = b"".join(parts)
    return heard
