from itertools import product

import pytest

from tenuto.session import Lifecycle, SessionLimits, State, Trigger
from tenuto.session.lifecycle import TRANSITIONS

LIMITS = SessionLimits(unattached=30, retention=300, paused=1800, max_age=21600)
LIFE = {
    State.NEW: 30.0,
    State.PLAYING: 21600.0,
    State.IDLE: 300.0,
    State.PAUSED: 1800.0,
    State.EXPIRED: 0.0,
}

# The shortest way into each state.
WAYS: dict[State, list[Trigger]] = {
    State.NEW: [],
    State.PLAYING: [Trigger.ATTACHED],
    State.IDLE: [Trigger.ATTACHED, Trigger.LEFT],
    State.PAUSED: [Trigger.PAUSE],
    State.EXPIRED: [Trigger.CLOSE],
}

# What happens, written down a second time: rows are states, "-" is a mistake of ours.
TABLE = """
            ATTACHED  LEFT     PAUSE    RESUME   DEADLINE  CLOSE
    NEW     PLAYING   -        PAUSED   NEW      EXPIRED   EXPIRED
    PLAYING PLAYING   IDLE     PAUSED   PLAYING  EXPIRED   EXPIRED
    IDLE    PLAYING   -        PAUSED   IDLE     EXPIRED   EXPIRED
    PAUSED  PAUSED    PAUSED   PAUSED   IDLE     EXPIRED   EXPIRED
    EXPIRED -         EXPIRED  EXPIRED  EXPIRED  EXPIRED   EXPIRED
"""


def expectations() -> dict[tuple[State, Trigger], State | None]:
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    return {
        (State[row[0]], Trigger[trigger]): None if after == "-" else State[after]
        for row in rows
        for trigger, after in zip(head, row[1:], strict=True)
    }


def lifecycle(state: State, now: float) -> Lifecycle:
    life = Lifecycle(LIMITS, now)
    for trigger in WAYS[state]:
        life.apply(trigger, now)
    assert life.state is state
    return life


def test_the_table_names_every_pair() -> None:
    assert expectations().keys() == set(product(State, Trigger))
    assert TRANSITIONS == {pair: after for pair, after in expectations().items() if after}


@pytest.mark.parametrize(
    ("state", "trigger"), list(product(State, Trigger)), ids=lambda member: member.name
)
def test_every_pair_has_a_row_or_raises(state: State, trigger: Trigger) -> None:
    after = expectations()[state, trigger]
    life = lifecycle(state, now=100.0)
    before = life.deadline
    if after is None:
        with pytest.raises(ValueError, match=f"^{trigger.name} in state {state.name}$"):
            life.apply(trigger, 110.0)
        assert (life.state, life.deadline) == (state, before)
    else:
        assert life.apply(trigger, 110.0) is after
        assert life.state is after
        # A step that leads nowhere refreshes nothing, save the pause that is asked for again.
        due = min(110.0 + LIFE[after], 100.0 + 21600.0)
        renewed = after is not state or (after, trigger) == (State.PAUSED, Trigger.PAUSE)
        assert life.deadline == (due if renewed else before)


@pytest.mark.parametrize("state", State, ids=lambda member: member.name)
def test_every_deadline(state: State) -> None:
    assert lifecycle(state, now=7.0).deadline == 7.0 + LIFE[state]


@pytest.mark.parametrize("state", [State.PLAYING, State.IDLE, State.PAUSED])
def test_the_absolute_age_is_never_passed(state: State) -> None:
    life = lifecycle(State.PLAYING, now=0.0)
    for trigger in {State.IDLE: [Trigger.LEFT], State.PAUSED: [Trigger.PAUSE]}.get(state, []):
        life.apply(trigger, 21590.0)
    assert life.deadline == 21600.0


def test_a_life_of_the_documented_length() -> None:
    assert SessionLimits() == SessionLimits(
        high_watermark=0.4,
        low_watermark=0.2,
        replay=10.0,
        unattached=30.0,
        retention=300.0,
        paused=1800.0,
        max_age=21600.0,
        refresh=1.0,
        max_listeners=64,
        catch_up=10,
    )
