"""70,000 frames across the sequence wrap, over a bad path, in virtual time."""

import random
from heapq import heappop, heappush

import pytest

from tenuto.media import AudioFormat, Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Played, Waiting
from tenuto.wire import Format, RecordDecoder, RecordEncoder

pytestmark = pytest.mark.untraced

START = 65_000
COUNT = 70_000
TINY = AudioFormat(50, 1)


def payload(sequence: int) -> bytes:
    return (sequence * 2654435761 % 65536).to_bytes(2, "big")


class Path:
    """Loses 2 %, holds 5 % back by up to 200 ms and doubles 1 % of what it is given."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._on_the_way: list[tuple[float, int, bytes]] = []
        self._offered = 0
        self.lost = 0
        self.doubled = 0

    def offer(self, packet: bytes, now: float) -> None:
        if self._rng.random() < 0.02:
            self.lost += 1
            return
        copies = 2 if self._rng.random() < 0.01 else 1
        self.doubled += copies - 1
        for _ in range(copies):
            held_back = self._rng.random() < 0.05
            delay = 0.030 + (self._rng.uniform(0.02, 0.2) if held_back else 0.0)
            self._offered += 1
            heappush(self._on_the_way, (now + delay, self._offered, packet))

    def pop_due(self, now: float) -> list[bytes]:
        due = []
        while self._on_the_way and self._on_the_way[0][0] <= now:
            due.append(heappop(self._on_the_way)[2])
        return due

    def __len__(self) -> int:
        return len(self._on_the_way)


@pytest.mark.parametrize("seed", [1, 2])
def test_monotonic_playout_and_exact_accounting(seed: int) -> None:
    encoder, decoder = RecordEncoder(), RecordDecoder()
    decoder.feed(encoder.format(Format(TINY, START)))
    path = Path(seed)
    buffer = JitterBuffer(START)
    arrivals = 0
    heard: list[int] = []
    concealed: list[int] = []
    skipped = waits = 0

    tick = 0
    while True:
        now = tick * 0.02
        if tick < COUNT:
            sequence = START + tick
            path.offer(encoder.frame(Frame(sequence, payload(sequence), 1)), now)
        for packet in path.pop_due(now):
            (frame,) = decoder.feed(packet)
            assert isinstance(frame, Frame)
            assert frame.payload == payload(frame.sequence), f"seed {seed}, tick {tick}"
            buffer.insert(frame, now)
            arrivals += 1
        if tick >= COUNT and not path:
            buffer.finish(START + COUNT)
        tick += 1
        match buffer.pull(now):
            case Played(frame, before):
                skipped += before
                heard.append(frame.sequence)
            case Concealed(sequence, before):
                skipped += before
                concealed.append(sequence)
            case Waiting():
                waits += 1
            case Ended():
                break

    counters = buffer.counters
    assert heard == sorted(set(heard)), f"seed {seed}"
    assert len(set(heard + concealed)) + skipped == COUNT, f"seed {seed}"
    assert len(heard) == counters.played
    assert len(concealed) == counters.concealed
    # Every frame sent was lost, or came once and was played or late; and nothing else came.
    assert COUNT == counters.played + counters.concealed + counters.skipped
    assert counters.concealed + counters.skipped == path.lost + counters.late
    assert arrivals == counters.received == COUNT - path.lost + path.doubled
    assert counters.received == counters.played + counters.duplicates + counters.late
    assert counters.duplicates == path.doubled
    assert counters.overflowed == 0
    assert path.lost == pytest.approx(0.02 * COUNT, rel=0.1)
    assert path.doubled == pytest.approx(0.01 * COUNT, rel=0.15)
    assert counters.skipped == skipped
    # 5 % are held back by 20 to 200 ms, which is one in each half second: the target covers nearly
    # all of that, and the few waits raise the delay, which stays in gapless mode.
    assert waits < 100
    assert 0.1 < buffer.target < 0.21
    assert counters.late < 0.03 * COUNT
