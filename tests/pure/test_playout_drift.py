"""What counts as a clock that runs away, and what does not. Times in microseconds."""

from tenuto.playout.drift import DriftAnchor

PULL = 20_000
SECOND = 1_000_000


def follow(anchor: DriftAnchor, bases: list[tuple[int, int]], position: int = 60_000) -> int:
    """Pull for so many seconds at each base; the error at this position then."""
    now = 0
    for seconds, base in bases:
        for _ in range(seconds * SECOND // PULL):
            anchor.follow(position, base, now)
            now += PULL
    return anchor.error(position)


def test_while_it_settles_there_is_no_error() -> None:
    assert follow(DriftAnchor(), [(4, 0)], 60_000) == 0
    anchor = DriftAnchor()
    assert follow(anchor, [(6, 0)]) == 0
    assert anchor.error(70_000) == 10_000
    anchor.restart()
    assert anchor.error(70_000) == 0


def test_a_base_that_creeps_is_drift() -> None:
    creeping = [(1, number * 1_000) for number in range(40)]
    assert follow(DriftAnchor(), [(6, 0), *creeping]) < -15_000


def test_a_path_that_is_longer_at_once_is_no_drift() -> None:
    # It is the least base of 16 s that counts.
    assert follow(DriftAnchor(), [(6, 0), (15, 30_000)]) == 0
    assert follow(DriftAnchor(), [(6, 0), (20, 30_000)]) == 0
    # As is one that drops back: but no delay is added to what it was at first.
    assert follow(DriftAnchor(), [(6, 30_000), (2, 0)]) == 30_000
