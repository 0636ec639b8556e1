"""The ring against a plain list, over 100,000 operations in all."""

import gc
import random

import pytest

from tenuto.media import Frame
from tenuto.session import Ring


def frame(sequence: int) -> Frame:
    return Frame(sequence, b"\0\0", 1)


class Model:
    """A list of all that is held, trimmed at the front."""

    def __init__(self, capacity: int, start: int) -> None:
        self.capacity = capacity
        self.held: list[int] = []
        self.end = start

    @property
    def first(self) -> int:
        return self.end - len(self.held)

    def append(self) -> None:
        self.held = [*self.held, self.end][-self.capacity :]
        self.end += 1

    def read(self, sequence: int, count: int) -> list[int] | None:
        if sequence < self.first:
            return None
        return [held for held in self.held if sequence <= held < sequence + count]


def read(ring: Ring, sequence: int, count: int) -> list[int] | None:
    try:
        return [frame.sequence for frame in ring.read(sequence, count)]
    except KeyError as error:
        assert error.args == (sequence,)
        return None


@pytest.mark.parametrize("seed", range(50))
def test_is_a_window_of_a_list(seed: int) -> None:
    rng = random.Random(seed)
    capacity = rng.randint(1, 12)
    start = rng.choice([0, 1, 65_530, 2**40])
    ring, model = Ring(capacity, start), Model(capacity, start)
    for step in range(2000):
        match rng.choices(["append", "read", "widen", "clear"], [100, 100, 1, 0.5])[0]:
            case "append":
                ring.append(frame(model.end))
                model.append()
            case "read":
                sequence = rng.randint(model.first - 2, model.end + 2)
                count = rng.randint(-1, 15)
                assert read(ring, sequence, count) == model.read(sequence, count), (seed, step)
            case "widen":
                wider = rng.randint(1, model.capacity + 8)
                ring.widen(wider)
                model.capacity = max(model.capacity, wider)
            case "clear":
                ring.clear()
                model.held = []
        assert (ring.first, ring.end, ring.capacity, len(ring)) == (
            model.first,
            model.end,
            model.capacity,
            len(model.held),
        ), (seed, step)
    assert read(ring, ring.first, len(ring)) == model.held


def test_full_to_the_brim_it_drops_the_oldest() -> None:
    ring = Ring(3)
    for sequence in range(5):
        ring.append(frame(sequence))
    assert [f.sequence for f in ring.read(2, 9)] == [2, 3, 4]
    assert len(ring) == ring.capacity == 3
    with pytest.raises(KeyError, match="1"):
        ring.read(1, 1)


@pytest.mark.parametrize("sequence", [4, 6, -1])
def test_frames_are_consecutive(sequence: int) -> None:
    ring = Ring(3, start=5)
    with pytest.raises(ValueError, match=f"frame {sequence} where 5 comes next"):
        ring.append(frame(sequence))
    assert len(ring) == 0


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_ring_holds_something(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"a ring of {capacity} frames"):
        Ring(capacity)


def test_a_full_ring_is_a_handful_of_objects_to_the_collector_of_cycles() -> None:
    ring = Ring(640)
    gc.collect()
    before = len(gc.get_objects())
    for sequence in range(2000):
        ring.append(Frame(sequence, bytes(640), 320))
    gc.collect()
    assert len(gc.get_objects()) - before < 10


def test_marks_go_with_their_frame() -> None:
    ring = Ring(4, 10)
    for sequence in range(10, 20):
        ring.append(Frame(sequence, b"ab", 1, (sequence,) if sequence % 3 == 0 else ()))
    assert [frame.marks for frame in ring.read(16, 4)] == [(), (), (18,), ()]
    assert len(ring._marks) == 1
    ring.clear()
    assert not ring._marks
