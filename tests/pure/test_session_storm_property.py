"""Two healthy listeners among dead legs, late and lost confirmations, flushes and wrong reports."""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Session, State

pytestmark = pytest.mark.untraced

TINY = AudioFormat(50, 1)
FRAME = 0.02
MOST_AHEAD = 21
"""420 ms."""


@dataclass
class Leg:
    """What a cursor's door does: confirmations come `rtt` late, if at all."""

    cursor: Cursor
    rtt: float
    loss: float = 0.0
    under_way: deque[tuple[float, int]] = field(default_factory=deque)


@dataclass
class Healthy(Leg):
    """Plays in real time from its first frame, and stops where a flush comes."""

    expected: int = 0
    epoch: int = 0
    buffered: float = 0.0
    begun: bool = False


class Storm:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.session = Session("s", TINY, 0.0, start=self.rng.choice([0, 65_500]))
        self.legs: list[Leg] = []
        self.healthy = [self.healthy_one(lead) for lead in (0.2, 2.0)]
        self.flushes = self.reports = 0

    def healthy_one(self, lead: float) -> Healthy:
        cursor = self.session.attach(f"healthy {lead}", 0.0, lead=lead)
        return Healthy(cursor, 0.03, expected=cursor.next)

    def tick(self) -> None:
        rng, session = self.rng, self.session
        elapsed = FRAME + rng.uniform(-1e-4, 1e-4)
        self.now += elapsed
        if rng.random() < 0.02 and len(self.legs) < 8:
            start = rng.choice([session.first, session.end, None])
            cursor = session.attach(
                f"other {rng.randrange(6)}",
                self.now,
                start=start,
                lead=rng.choice([0.1, 0.2, 2.0, 30.0, None]),
                live=rng.choice([None, True]),
            )
            self.legs.append(Leg(cursor, rng.choice([0.0, 0.4, 3.0]), rng.choice([0.0, 0.5, 1.0])))
        for leg in list(self.legs):
            if rng.random() < 0.005 or leg.cursor.departure is not None:
                session.detach(leg.cursor, self.now)
                self.legs.remove(leg)
        if rng.random() < 0.002:
            session.flush(self.now, TINY)
            self.flushes += 1
        if rng.random() < 0.2:
            end = session.end
            heard = rng.choice([0, 1 << 59, end, max(0, end - 300), rng.randrange(end + 1)])
            session.progress(f"other {rng.randrange(6)}", heard, self.now)
            self.reports += 1
        for leg in rng.sample(self.legs, len(self.legs)):
            if rng.random() < 0.8:
                self.take(leg)
                self.produce()
        for each in self.healthy:
            self.play(each, elapsed)
        self.produce()

    def produce(self) -> None:
        session = self.session
        while session.wants_more(self.now):
            session.append(Piece(b"ab", 1))
            assert session.end - session.frontier <= MOST_AHEAD
        assert session.base <= session.frontier <= session.end

    def take(self, leg: Leg) -> list[int]:
        rng, cursor = self.rng, leg.cursor
        most = 100 if isinstance(leg, Healthy) else rng.choice([1, 10, 100])
        taken = [frame.sequence for frame in self.session.take(cursor, self.now, most)]
        if taken and rng.random() >= leg.loss:
            leg.under_way.append((self.now + leg.rtt, cursor.next))
        while leg.under_way and leg.under_way[0][0] <= self.now:
            self.session.confirm(cursor, leg.under_way.popleft()[1], self.now, leg.rtt)
        return taken

    def play(self, listener: Healthy, elapsed: float) -> None:
        session = self.session
        if listener.epoch != session.epoch:
            listener.epoch, listener.expected = session.epoch, session.base
            listener.buffered, listener.begun = 0.0, False
        listener.buffered -= elapsed / FRAME * listener.begun
        taken = self.take(listener)
        assert taken == list(range(listener.expected, listener.expected + len(taken)))
        listener.expected += len(taken)
        listener.buffered += len(taken)
        listener.begun = listener.begun or bool(taken)
        assert listener.cursor.departure is None
        assert listener.buffered > -1, "it has run dry"
        lead = listener.cursor.lead
        assert lead is not None
        assert listener.buffered <= lead / FRAME + 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_others_do_a_healthy_listener_hears_every_frame_in_time(seed: int) -> None:
    storm = Storm(seed)
    for tick in range(6000):
        try:
            storm.tick()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}, tick {tick}: {failure}") from failure
    assert storm.session.state is State.PLAYING
    assert min(storm.flushes, storm.reports) > 0
    assert all(each.expected > 65_500 or each.epoch > 0 for each in storm.healthy)
