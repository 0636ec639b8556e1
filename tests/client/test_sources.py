"""What a new session is asked to say, after flushes by ourselves and by others."""

from __future__ import annotations

from tenuto.client.asking import Asking, Place
from tenuto.client.sources import Sources
from tenuto.client.target import Target

ONE, TWO = {"text": "one"}, {"text": "two"}


class Flushed:
    """A session of `first` that is flushed; `present` is the epoch that was read."""

    def __init__(self) -> None:
        target = Target.parse("https://localhost/v1/speak")
        self.asking = Asking(target, "POST", {"text": "first"}, token=None)
        self.present = 0
        self.sources = Sources(self.asking, lambda: self.present)

    def begin(self, epoch: int) -> None:
        self.present = epoch
        self.sources.began(epoch, 10 * epoch)

    @property
    def says(self) -> str | None:
        anew = self.asking.anew(Place("s", self.present, 50))
        return None if anew is None else str(anew.request.body).split('"text": "')[1].split('"')[0]


def test_the_answer_may_come_before_the_epoch_and_behind_it() -> None:
    at = Flushed()
    at.sources.replacing(ONE)
    at.sources.replaced(1, ONE)
    assert at.sources.to_come
    assert at.says == "one"
    at.begin(1)
    assert not at.sources.to_come
    at.sources.replacing(TWO)
    at.begin(2)
    at.sources.replaced(2, TWO)
    assert at.says == "two"


def test_two_at_once_are_each_others_successors() -> None:
    at = Flushed()
    at.sources.replacing(ONE)
    at.sources.replacing(TWO)
    at.begin(1)
    at.sources.replaced(1, ONE)
    at.begin(2)
    at.sources.replaced(2, TWO)
    assert at.says == "two"


def test_two_answers_before_the_first_epoch_is_read() -> None:
    at = Flushed()
    for epoch, params in ((1, ONE), (2, TWO)):
        at.sources.replacing(params)
        at.sources.replaced(epoch, params)
    at.begin(1)
    assert at.says == "two"
    at.begin(2)
    assert at.says == "two"


def test_what_others_say_is_not_known() -> None:
    at = Flushed()
    at.begin(1)
    assert at.says is None
    at.sources.replacing(ONE)
    at.begin(3)  # Ours was the second, and the third is somebody else's.
    at.sources.replaced(2, ONE)
    assert at.says is None
    at.sources.replacing(TWO)
    at.sources.replaced(4, TWO)
    at.begin(5)
    assert at.says is None


def test_a_flush_that_was_refused_is_none() -> None:
    at = Flushed()
    at.sources.replacing(ONE)
    at.sources.replaced(None, ONE)
    assert at.says == "first"
    at.begin(1)
    assert at.says is None


def test_a_new_session_says_it_from_its_first_epoch_on() -> None:
    at = Flushed()
    at.sources.replacing(ONE)
    at.sources.replaced(4, ONE)
    at.sources.restarted()
    at.present = -1
    at.begin(0)
    assert at.says == "one"
    at.present = -1  # Once more, and it is flushed before its FORMAT is read.
    at.sources.restarted()
    at.sources.replacing(TWO)
    at.sources.replaced(1, TWO)
    at.sources.began(0, 0)
    assert at.says == "two"
    at.begin(1)
    assert at.says == "two"
