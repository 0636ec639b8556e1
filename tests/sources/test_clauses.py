from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources.clauses import MAX_CLAUSE_SIZE, MAX_TEXT, clean_text, cut_clauses

ANY_TEXT = st.text(
    st.one_of(
        st.sampled_from(" .,!?\n\t\u3002\uff0c\u0301\u200d"),
        st.sampled_from("aZ9\u00e9\u4f60\U0001f600"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=1500,
)

FINE_DAY = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002"


@given(ANY_TEXT)
def test_clauses_hold_every_word_in_order_within_the_bound(text: str) -> None:
    end = 0
    for clause in cut_clauses(text):
        assert text[end : clause.offset].strip() == ""
        assert clause.text == text[clause.offset : clause.offset + len(clause.text)]
        assert 0 < len(clause.text.encode()) <= MAX_CLAUSE_SIZE
        end = clause.offset + len(clause.text)
    assert text[end:].strip() == ""


def test_a_short_text_is_one_clause() -> None:
    text = "Mr. Two, three, e.g. four 四。"
    assert [(c.offset, c.text, c.pause) for c in cut_clauses(f"  {text}")] == [(2, text, True)]


@pytest.mark.parametrize(
    ("text", "first", "pause"),
    [
        ("This is a sentence. And more.", "This is a sentence.", True),
        (FINE_DAY * 20, FINE_DAY * 3, True),
        ("Mr. Bean said to take e.g. one. Or", "Mr. Bean said to take e.g. one.", True),
        ("words, more " * 30, "words, more " * 19 + "words,", False),
        ("word " * 90, "word " * 48, False),
        ("3.14159" * 50, ("3.14159" * 9)[:60], False),
        ("a\u0301" * 200, "a\u0301" * 20, False),
        ("\u4f60" * 200, "\u4f60" * 20, False),
        ("\u0301" * 200, "\u0301" * 30, False),
    ],
)
def test_a_long_text_is_cut_where_a_voice_rests(text: str, first: str, pause: bool) -> None:
    clause = next(cut_clauses(text))
    assert (clause.text, clause.pause) == (first, pause)


def test_the_first_clause_is_one_sentence_and_the_others_are_as_many_as_fit() -> None:
    text = "This is a sentence. " * 20 + FINE_DAY * 20
    clauses = [clause.text for clause in cut_clauses(text)]
    assert clauses[0] == "This is a sentence."
    assert clauses[1] == ("This is a sentence. " * 12).strip()
    assert clauses[3] == FINE_DAY * 11


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000", "\0", "\x01\x7f\x85"])
def test_a_text_without_characters_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="empty") as refusal:
        clean_text(text)
    assert refusal.value.code is ErrorCode.BAD_TEXT


def test_the_bound_is_exact_and_named() -> None:
    assert clean_text("x" * MAX_TEXT)
    with pytest.raises(RequestError, match=r"100000 characters.* at most 20000") as refusal:
        clean_text("x" * 100_000)
    assert refusal.value.code is ErrorCode.TOO_LARGE


def test_a_lone_surrogate_is_refused_with_its_position() -> None:
    with pytest.raises(RequestError, match=r"character 3 .*U\+D83D") as refusal:
        clean_text("abc\ud83d")
    assert refusal.value.code is ErrorCode.BAD_TEXT
    str(refusal.value).encode()


def test_control_characters_become_spaces_in_their_place() -> None:
    assert clean_text("a\0b\x01c\r\n\td\x9fe\u2028") == "a b c \n\td e\n"
