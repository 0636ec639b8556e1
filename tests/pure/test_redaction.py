"""No token survives, wherever in a text it stands, cut off or not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.auth import issue
from tenuto.redaction import redact
from tests.pure.auth.keys import SECRET, claims, key

TOKENS = [issue(key(), claims()), issue(key(SECRET), claims(session="abc")), "opaque-token_~+/=="]

PLACES = [
    "GET /v1/speak?token={}&text=Hi HTTP/1.1",
    "GET /v1/speak?text=Hi&token={}",
    "https://localhost/v1/sessions/x/audio?TOKEN={}#part",
    "token%3D{}%26text=hi",
    "Authorization: Bearer {}",
    "authorization: bearer   {}",
    "[(b'authorization', b'Bearer {}'), (b'host', b'x')]",
    "Bearer%20{}",
    '{{"session": "x", "token": "{}"}}',
    '{{\\"token\\": \\"{}\\"}}',
    "{{'token': '{}'}}",
    "[(b'tenuto-token', b'{}')]",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("token", TOKENS, ids=["EdDSA", "HS256", "opaque"])
def test_a_token_is_taken_out_of_its_place(place: str, token: str) -> None:
    shown = redact(place.format(token))
    assert token not in shown
    assert "***" in shown


@pytest.mark.parametrize("token", TOKENS[:2])
def test_a_web_token_is_found_anywhere_and_however_much_of_it_is_left(token: str) -> None:
    for size in range(20, len(token) + 1):
        assert redact(f"fault in <{token[:size]}>") == "fault in <***>"


@pytest.mark.parametrize(
    "text",
    [
        "", "SessionOpened session=abc source=speech", "the token expired 3 s ago",
        "give tokens to bearers", "GET /v1/speak?text=token", '{"event": "DoorOpened"}',
        "token key k.pem", "eyJa",
    ],
)  # fmt: skip
def test_other_words_stay(text: str) -> None:
    assert redact(text) == text


@given(st.text(max_size=200))
def test_json_stays_json_and_once_is_enough(text: str) -> None:
    line = json.dumps({"fault": redact(text)})
    assert json.loads(redact(line)) is not None
    assert redact(redact(text)) == redact(text)
