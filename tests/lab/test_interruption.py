"""Signals are noted, and obeyed where nothing is half done."""

from __future__ import annotations

import select
import signal
from collections.abc import Iterator

import pytest

from bench.lab.errors import Interrupted
from bench.lab.interruption import Interruption


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    with Interruption() as entered:
        yield entered


def test_a_signal_waits_for_a_check_and_wakes_who_waits(interruption: Interruption) -> None:
    interruption.check()
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    assert select.select([interruption], (), (), 0)[0]
    with pytest.raises(Interrupted):
        interruption.check()
    assert interruption.number == signal.SIGTERM


def test_the_first_signal_lets_a_report_be_finished(interruption: Interruption) -> None:
    with interruption.abandoned_by_second():
        signal.raise_signal(signal.SIGINT)
    assert interruption.number == signal.SIGINT


def test_the_second_abandons_it_but_never_a_file(interruption: Interruption) -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(Interrupted), interruption.abandoned_by_second():
        with interruption.shielded():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it went on")
    signal.raise_signal(signal.SIGINT)


def test_what_was_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGHUP)
            interruption.check()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
