"""The frontier in random company, against a model that knows when every frame was sent."""

import random
from dataclasses import dataclass, field

import pytest

from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Session

pytestmark = pytest.mark.untraced

TINY = AudioFormat(50, 1)
HIGH = 20


@dataclass
class Leg:
    """One connection: what was sent on it when, and what arrived."""

    cursor: Cursor
    rtt: float
    dead: bool = False
    sent: list[tuple[float, int]] = field(default_factory=list)
    """When which frames were sent that nothing is known of."""
    until: int = 0
    heard_of: float = -1e9

    def silent(self, now: float) -> bool:
        if not self.sent:
            return False
        return now - max(self.sent[0][0], self.heard_of) > 0.5 + 2 * self.rtt


class Company:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.base = self.rng.choice([0, 65_500])
        self.session = Session("s", TINY, 0.0, start=self.base)
        self.legs: list[Leg] = []
        self.arrived = self.base

    def frontier(self) -> int:
        sent = [leg.cursor.next for leg in self.legs if not leg.silent(self.now)]
        return max([self.arrived, self.base, *sent])

    def tick(self) -> None:
        rng, session = self.rng, self.session
        self.now += rng.choice([0.02, 0.013, 0.04, 0.3]) + rng.uniform(0, 1e-4)
        if rng.random() < 0.1 and len(self.legs) < 5:
            start = rng.choice([None, session.end])
            name = rng.choice("abc")
            cursor = session.attach(name, self.now, start=start, lead=rng.choice([0.2, 2.0, None]))
            leg = Leg(cursor, rng.choice([0.0, 0.05, 0.8]), until=cursor.next)
            session.confirm(cursor, cursor.next, self.now, leg.rtt)
            self.legs.append(leg)
        for leg in list(self.legs):
            roll = rng.random()
            if roll < 0.01:
                leg.dead = not leg.dead
            elif roll < 0.02 or leg.cursor.departure is not None:
                session.detach(leg.cursor, self.now)
                self.legs.remove(leg)
        if rng.random() < 0.01:
            self.flush()
        actors = [*self.legs, None]
        rng.shuffle(actors)
        for actor in actors:
            if actor is None:
                self.produce()
            else:
                self.confirm(actor)
                self.take(actor)
        session.wants_more(self.now)
        assert session.frontier == self.frontier()

    def flush(self) -> None:
        self.session.flush(self.now, TINY)
        self.base = self.arrived = self.session.base
        for leg in self.legs:
            if not leg.sent:
                leg.until = self.base

    def produce(self) -> None:
        session = self.session
        while session.wants_more(self.now):
            assert session.end - self.frontier() <= HIGH
            session.append(Piece(b"ab", 1))

    def take(self, leg: Leg) -> None:
        frames = self.session.take(leg.cursor, self.now, self.rng.choice([1, 5, 100]))
        if frames:
            leg.sent.append((self.now, frames[-1].sequence + 1))
            assert frames[0].sequence >= self.base

    def confirm(self, leg: Leg) -> None:
        if leg.dead:
            return
        known = [until for when, until in leg.sent if when + leg.rtt <= self.now]
        until = known[-1] if known else leg.until
        older = [
            each
            for each in self.legs[: self.legs.index(leg)]
            if each.cursor.listener == leg.cursor.listener
        ]
        before = [each.cursor.departure for each in older]
        self.session.confirm(leg.cursor, until, self.now, leg.rtt)
        if not known:
            assert [each.cursor.departure for each in older] == before
            return
        assert all(each.cursor.departure is not None for each in older)
        leg.sent = leg.sent[len(known) :]
        leg.until, leg.heard_of = until, self.now
        self.arrived = max(self.arrived, until)


@pytest.mark.parametrize("seed", range(40))
def test_the_frontier_is_what_may_still_arrive(seed: int) -> None:
    company = Company(seed)
    for tick in range(1000):
        try:
            company.tick()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}, tick {tick}") from failure
    assert company.session.end > company.session.start + 500
