"""The proof: our lines of tc on a real netem, and the same profiles through our own link.

With `-s` it prints the table that docs/loss-testing quotes; `python -m netem agree` does too.
"""

import os

import pytest

from netem.catalogue import Catalogue
from netem.measure.agreement import Agreement
from netem.measure.rendering import agreement_lines
from netem.measure.side_by_side import TRIALS, Trial, side_by_side, trial_of
from netem.vm.packages import missing

SEED = 1


def no_machine() -> str | None:
    """In CI the machine has to be there: `.ci/run` fetches what it needs."""
    return None if os.environ.get("CI") else missing()


pytestmark = [
    pytest.mark.skipif(no_machine() is not None, reason=f"{no_machine()}"),
    # Alone it takes 40 s; it shares its processors.
    pytest.mark.timeout(240),
]


def measured(trials: list[Trial]) -> dict[str, list[Agreement]]:
    found: dict[str, list[Agreement]] = {}
    for one in side_by_side(trials, SEED):
        found.setdefault(one.profile, []).append(one)
    return found


def test_our_link_and_a_real_netem_do_the_same() -> None:
    catalogue = Catalogue()
    trials = {name: trial_of(catalogue.load(name)) for name in TRIALS}
    found = measured(list(trials.values()))
    # A machine that was starved for a while shows a delay of its own; a wrong link shows it again.
    late = [name for name, ways in found.items() if not all(way.delay_agrees for way in ways)]
    if late:
        found |= measured([trials[name] for name in late])
    table = [one for ways in found.values() for one in ways]
    text = "\n".join(agreement_lines(table))
    print(f"\n{text}")
    assert {one.profile for one in table} == set(TRIALS)
    assert all(one.agrees for one in table), text
    # The two dropped something, and not all.
    assert all(0.03 < share < 0.07 for one in found["loss5"] for share in one.loss)
    assert all(0.10 < share < 0.25 for one in found["interop"] for share in one.loss)
    assert all(2.0 < burst < 4.0 for one in found["loss5-burst"] for burst in one.burst)
    assert all(share == 1.0 for one in found["udp-blocked-drop"] for share in one.loss)
    sent, (_, netem) = found["udp-blocked-first-packet"][0].sent, found["udp-blocked-first-packet"]
    assert netem.loss == ((sent[0] - 1) / sent[0],) * 2
