"""From results to the tables of the report."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.lab.figures import (
    FIGURES,
    PLAYOUT,
    Ground,
    Verdict,
    late_or_lost,
    opinion,
    rating,
    tables,
)
from bench.lab.record import Flow, Machine, Results, Wave, Wire
from tests.support.lab_results import EXTREMES, MODES, profile, results, setting


def small(*flows: Flow, waves: tuple[Wave, ...] | None = None) -> Results:
    asked = setting(modes=MODES[:2], seeds=2, seconds=0.2)
    wave = Wave(profile="rtt80-loss5", seeds=(1, 2), attempt=1, machine=Machine())
    return Results(setting=asked, waves=waves or (wave,), flows=flows, complete=True)


def flow(mode: str, seed: int, *delays: float | None, **other: object) -> Flow:
    values: dict[str, object] = {
        "mode": mode, "profile": "rtt80-loss5", "seed": seed, "wave": 0, "delays": delays,
        "handshake": 0.08, "first_audio": 0.16,
        "down": Wire(packets=10, size=8000), "up": Wire(packets=5, size=600),
    }  # fmt: skip
    return Flow(**{**values, **other})  # type: ignore[arg-type]


def test_a_flow_by_hand() -> None:
    delays = (0.04, 0.04, 0.10, None, 0.25, 0.04, 0.04, 0.04, 0.04, 0.04)
    (table,) = tables(small(flow("quic-stream", 1, *delays)))
    assert table.floor == 0.04
    (mode,) = table.modes
    values = {name: each[1] for name, each in mode.values.items()}
    # Above the floor: 0, 0, 60, never, 210, 0 ... of ten frames.
    assert values["late_or_lost_40"] == 0.3
    assert values["late_or_lost_60"] == 0.2
    assert values["late_or_lost_200"] == 0.2
    assert values["never"] == 0.1
    assert values["p50"] == 0.0
    assert values["p95"] == math.inf
    assert values["concealed"] == pytest.approx(60 * 0.2)
    assert values["unheard"] == pytest.approx(0.040)
    # After frame 2 at 100 ms comes frame 5 at 100 ms; frame 4 at 290 ms is the last.
    assert values["silence"] == pytest.approx(0.110)
    assert values["handshake"] == 0.08
    assert values["first_audio"] == 0.16
    # 0.2 s of audio, 10 frames of 640 bytes.
    assert values["down"] == pytest.approx(8000 * 8 / 0.2)
    assert values["up"] == pytest.approx(600 * 8 / 0.2)
    assert values["overhead"] == pytest.approx(8600 / 6400)
    # 20 % unheard in one run of two: BurstR 2 * 0.8 = 1.6; one way 40 + 150 + 20 ms.
    assert values["r_150"] == pytest.approx(93.2 - 4.1072 - 95 * 20 / (20 / 1.6 + 25.1), abs=0.001)
    assert mode.outside == frozenset({0.04})
    assert mode.curve[0] == pytest.approx(0.3)
    assert mode.curve[-1] == pytest.approx(0.1)


def test_a_flow_that_ended_early_has_all_its_frames_counted() -> None:
    (table,) = tables(
        small(
            flow("quic-stream", 1, *[0.04] * 10),
            flow("quic-stream", 2, *[0.04] * 4, trouble="reset"),
            flow("tcp-cubic", 1, trouble="no connection", handshake=None, first_audio=None),
        )
    )
    quic, tcp = table.modes
    assert quic.values["never"] == {1: 0.0, 2: 0.6}
    assert quic.troubles == (("reset", 1),)
    assert quic.silent == 0
    assert tcp.values["late_or_lost_200"] == {1: 1.0}
    assert tcp.values["handshake"] == {1: math.inf}
    assert tcp.values["mos_150"] == {1: 1.0}
    assert tcp.estimates["first_audio"].infinite == 1
    assert (tcp.silent, tcp.troubles) == (1, (("no connection", 1),))
    assert math.isnan(tcp.estimates["jitter"].value)
    assert tcp.comparisons["first_audio"].verdict is Verdict.UNKNOWN


def test_a_seed_that_ran_twice_counts_once() -> None:
    again = Wave(profile="rtt80-loss5", seeds=(1,), attempt=2, machine=Machine())
    first = Wave(profile="rtt80-loss5", seeds=(1,), attempt=1, machine=Machine())
    (table,) = tables(
        small(
            flow("quic-stream", 1, *[0.04] * 10),
            flow("quic-stream", 1, *[0.04] * 5, wave=1),
            waves=(first, again),
        )
    )
    assert table.modes[0].values["never"] == {1: 0.25}
    assert table.modes[0].seeds == (1,)


def test_invalid_waves_are_in_no_figure_and_no_floor() -> None:
    bad = Wave(
        profile="rtt80-loss5", seeds=(1,), attempt=1, machine=Machine(), faults=("too busy",)
    )
    good = replace(bad, faults=())
    (table,) = tables(
        small(
            flow("quic-stream", 1, *[0.01] * 10),
            flow("quic-stream", 2, *[0.04] * 10, wave=1),
            waves=(bad, good),
        )
    )
    assert table.floor == 0.04
    assert table.modes[0].seeds == (2,)
    assert table.absent == ("tcp-cubic",)
    assert table.missing == (1,)


def test_the_baseline_is_quic_stream_or_the_first_that_ran() -> None:
    (table,) = tables(small(flow("tcp-cubic", 1, 0.04), flow("quic-stream", 1, 0.04)))
    assert table.baseline == "quic-stream"
    assert [mode.name for mode in table.modes] == ["quic-stream", "tcp-cubic"]
    assert not table.modes[0].comparisons
    (table,) = tables(small(flow("tcp-cubic", 1, 0.04), flow("other", 1, 0.04)))
    assert table.baseline == "tcp-cubic"
    assert table.mode("other") is table.modes[1]
    assert table.mode(None) is None
    assert table.comparisons == 1


def test_nothing_that_counts_is_a_table_of_nothing() -> None:
    (table,) = tables(Results(setting=setting()))
    assert table.modes == ()
    assert table.baseline is None
    assert table.typical is None
    assert table.floor is None
    assert table.comparisons == 0
    assert len(table.absent) == 8


def test_a_profile_that_the_setting_does_not_know_is_shown() -> None:
    found = tables(small(flow("quic-stream", 1, 0.04, profile="elsewhere")))
    assert [table.note.name for table in found] == ["rtt80-loss5", "elsewhere"]


def test_the_median_seed_is_the_typical_one() -> None:
    def lost(seed: int, count: int) -> Flow:
        return flow("quic-stream", seed, *[0.04] * (10 - count), *[None] * count)

    (table,) = tables(small(lost(1, 5), lost(2, 0), lost(3, 2)))
    assert table.typical == 3
    # Of an even number the lower one, of equals the first.
    (table,) = tables(small(lost(1, 5), lost(2, 1), lost(3, 1), lost(4, 9)))
    assert table.typical == 3
    (table,) = tables(small(lost(4, 1), lost(2, 1)))
    assert table.typical == 2


def test_repaired_frames_on_a_playout_delay_are_told_where_there_are_any() -> None:
    (table,) = tables(small(flow("quic-stream", 1, 0.040, 0.140)))
    assert table.repair == (0.1,)
    (table,) = tables(small(flow("quic-stream", 1, 0.040, 0.040)))
    assert table.repair == ()


def test_no_loss_is_zero_and_no_difference_anywhere() -> None:
    (table,) = tables(results(loss=0.0))
    for mode in table.modes:
        found = mode.estimates[late_or_lost(0.060)]
        assert (found.value, found.low, found.ground) == (0.0, 0.0, Ground.FRAMES)
        for playout in PLAYOUT:
            if mode.comparisons:
                compared = mode.comparisons[late_or_lost(playout)]
                assert compared.verdict is Verdict.NOT_SHOWN


def test_loss_is_told_apart() -> None:
    (table,) = tables(results())
    cubic = table.mode("tcp-cubic")
    assert cubic is not None
    assert cubic.comparisons[late_or_lost(0.060)].word == "worse"
    assert table.comparisons == 7
    assert len(cubic.pooled) == 10_000


@pytest.mark.parametrize("name", EXTREMES)
def test_nothing_breaks_the_tables(name: str) -> None:
    made = EXTREMES[name]()
    found = tables(made)
    assert len(found) == len(made.setting.profiles)
    for table in found:
        for mode in table.modes:
            assert set(mode.estimates) == {each.name for each in FIGURES}
            assert set(mode.comparisons) <= {each.name for each in FIGURES if each.compared}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.none() | st.floats(0.01, 3.0), max_size=12), min_size=1, max_size=5
    )
)  # fmt: skip
def test_shares_fall_with_the_playout_delay(flows: list[list[float | None]]) -> None:
    made = small(*(flow("quic-stream", seed, *delays) for seed, delays in enumerate(flows)))
    (table,) = tables(made)
    (mode,) = table.modes
    shares = [mode.estimates[late_or_lost(playout)].value for playout in PLAYOUT]
    assert shares == sorted(shares, reverse=True)
    assert mode.estimates["never"].value <= shares[-1] + 1e-12
    for playout in PLAYOUT:
        assert 1.0 <= mode.estimates[opinion(playout)].value <= 4.5
        assert mode.estimates[rating(playout)].value <= 93.2


def test_profiles_keep_their_order() -> None:
    asked = setting(profiles=[profile("b"), profile("a")], seeds=2, seconds=1)
    assert [table.note.name for table in tables(results(asked=asked))] == ["b", "a"]
