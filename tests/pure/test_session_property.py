"""Sessions in random company, against a model of each listener that plays in real time."""

import random
from dataclasses import dataclass, field

import pytest

from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Departure, Session, State

pytestmark = pytest.mark.untraced

TINY = AudioFormat(50, 1)
HIGH, LOW = 20, 10
LEADS = [0.1, 0.14, 0.2, 1.0, 2.0, 5.0, None]


@dataclass
class Player:
    """Plays in real time what one listener got, whichever of its cursors got it."""

    buffered: float = 0.0
    """Frames sent and not yet played."""
    begun: bool = False
    twice: bool = False
    """Two cursors got its frames at the same time."""
    underruns: int = 0

    def play(self, elapsed: float) -> None:
        left = self.buffered - elapsed / 0.02
        if self.begun and left < -1e-6:
            self.underruns += 1
        self.buffered = max(0.0, left)

    def take(self, frames: int) -> None:
        self.begun = self.begun or frames > 0
        self.buffered += frames


@dataclass
class Listener:
    """What one cursor got."""

    cursor: Cursor
    since: float
    player: Player
    steady: bool = False
    """Reads at every tick and never leaves."""
    stalled: bool = False
    got: list[int] = field(default_factory=list)
    alone: Player = field(default_factory=Player)
    """As if nothing had come but by this cursor, which is all that a session can tell of it."""

    @property
    def lead(self) -> float | None:
        return self.cursor.lead

    @property
    def buffered(self) -> float:
        return self.player.buffered


class Company:
    """A session, its producer, its listeners and a clock, all moved by one seed."""

    def __init__(self, seed: int, *, pauses: bool) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.pauses = pauses
        self.session = Session("s", TINY, 0.0, start=self.rng.choice([0, 65_500]))
        self.listeners: list[Listener] = []
        self.history: dict[str, list[int]] = {}
        """What each listener got, over all of its cursors and each frame once."""
        self.players: dict[str, Player] = {}
        self.filling = True
        self.names = 0

    # Actions

    def produce(self) -> None:
        session = self.session
        before = session.end
        while True:
            ahead = session.end - session.frontier
            if ahead >= HIGH or ahead <= LOW:
                self.filling = ahead <= LOW
            if not session.wants_more(self.now):
                break
            assert self.filling
            assert session.state in (State.NEW, State.PLAYING)
            session.append(Piece(b"ab", 1))
        # It may be more where one has left who went on at the end and took nothing.
        assert ahead <= HIGH or session.end == before
        if self.filling and session.state is State.PLAYING:
            # Only the next frame of somebody who plays in real time or has just come holds it.
            assert any(
                session.end - item.cursor.next >= 2 * HIGH + 100 + 500
                and (
                    item.buffered > 0
                    or item.alone.buffered > 0
                    or (item.player.twice and item.cursor.playing(self.now))
                    or (not item.got and self.now < item.since + 0.1)
                )
                for item in self.listeners
            )

    def take(self, listener: Listener) -> int:
        cursor = listener.cursor
        first = self.session.first
        most = 100 if listener.steady else self.rng.choice([1, 3, 10, 100])
        due = self.session.due(cursor, self.now)
        frames = [frame.sequence for frame in self.session.take(cursor, self.now, most)]
        self.session.confirm(cursor, cursor.next, self.now)
        assert len(frames) == min(most, due)
        expected = cursor.start + len(listener.got)
        assert frames == list(range(expected, expected + len(frames)))
        listener.got += frames
        listener.alone.take(len(frames))
        if cursor.departure is Departure.FELL_BEHIND:
            assert not frames
            assert expected < first
        history = self.history.setdefault(cursor.listener, [])
        for sequence in frames:
            if history and sequence <= history[-1]:
                continue
            assert not history or sequence == history[-1] + 1
            history.append(sequence)
            listener.player.take(1)
        if listener.lead is not None and frames:
            assert len(frames) <= 10
            # Which of two cursors brought a frame first, no session can tell.
            player = listener.alone if listener.player.twice else listener.player
            # A cursor before this one may have been sent more, with a longer lead.
            beyond = history[-1] - frames[-1]
            assert player.buffered - beyond <= listener.lead / 0.02 + 1e-6
        return len(frames)

    def attach(self) -> None:
        session = self.session
        if len(self.listeners) >= 6:
            return
        if self.history and self.rng.random() < 0.4:
            # A resume, beside the old leg if there still is one.
            name = self.rng.choice([*sorted(n for n in self.history if n[0] != "s"), "new"])
            history = self.history.get(name, [])
            start = history[-1] + 1 if history else session.first
            if start < session.first:
                return
        else:
            self.names += 1
            name = f"listener {self.names}"
            start = self.rng.choice([session.first, session.end])
        self.add(session.attach(name, self.now, start=start, lead=self.rng.choice(LEADS)))

    def add(self, cursor: Cursor, *, steady: bool = False) -> None:
        player = self.players.setdefault(cursor.listener, Player())
        others = [item for item in self.listeners if item.player is player]
        player.twice = player.twice or any(not item.cursor.departure for item in others)
        self.listeners.append(Listener(cursor, self.now, player, steady))

    def detach(self, listener: Listener) -> None:
        self.session.detach(listener.cursor, self.now)
        self.listeners.remove(listener)

    # Time

    def tick(self) -> None:
        rng = self.rng
        # Never whole frames, so that no rounding decides whether somebody has played out.
        elapsed = rng.choice([0.02, 0.02, 0.02, 0.013, 0.027, 0.04]) + rng.uniform(-1e-4, 1e-4)
        self.now += elapsed
        for player in [*self.players.values(), *(item.alone for item in self.listeners)]:
            player.play(elapsed)
        if rng.random() < 0.03:
            self.attach()
        if self.pauses and rng.random() < 0.01:
            self.session.pause(self.now)
        elif rng.random() < 0.1:
            self.session.resume(self.now)
        for listener in [item for item in self.listeners if not item.steady]:
            gone = listener.cursor.departure is not None
            if (gone and rng.random() < 0.5) or rng.random() < 0.002:
                self.detach(listener)
            elif rng.random() < 0.005:
                listener.stalled = not listener.stalled
        actors = [*self.listeners, None]
        rng.shuffle(actors)
        for actor in actors:
            if actor is None:
                self.produce()
            elif not actor.stalled:
                taken = self.take(actor)
                while actor.lead is None and taken and rng.random() < 0.8:
                    self.produce()
                    taken = self.take(actor)
        assert self.session.frontier <= self.session.end
        for listener in self.listeners:
            older = self.older(listener)
            assert not (listener.got and any(old.departure is None for old in older))

    def older(self, listener: Listener) -> list[Cursor]:
        cursors = self.session.cursors
        return [
            cursor
            for cursor in cursors[: cursors.index(listener.cursor)]
            if cursor.listener == listener.cursor.listener
        ]


@pytest.mark.parametrize("seed", range(30))
def test_everybody_gets_every_frame_once_and_never_too_early(seed: int) -> None:
    company = Company(seed, pauses=True)
    for tick in range(1200):
        try:
            company.tick()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}, tick {tick}") from failure
    assert sum(map(len, company.history.values())) > 1000


@pytest.mark.parametrize("seed", range(100, 120))
def test_no_listener_ever_costs_another_a_gap(seed: int) -> None:
    """Two that read at every tick, among others that come, stall and go."""
    company = Company(seed, pauses=False)
    for lead in (0.2, 2.0):
        cursor = company.session.attach(f"steady {lead}", 0.0, lead=lead)
        company.add(cursor, steady=True)
    for tick in range(2500):
        company.tick()
        for listener in company.listeners:
            if listener.steady:
                assert listener.cursor.departure is None, f"seed {seed}, tick {tick}"
                assert listener.player.underruns == 0, f"seed {seed}, tick {tick}"
                assert listener.got or tick == 0, f"seed {seed}, tick {tick}"
