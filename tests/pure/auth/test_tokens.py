"""Every way in which a token does not do is told apart, and none is taken for a good one."""

import base64
import hmac
import json
import subprocess
import sys
from dataclasses import replace

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.auth import (
    MAX_KEYS,
    MAX_TOKEN_SIZE,
    Claims,
    Key,
    KeyRing,
    Reason,
    Scope,
    TokenError,
    authorise,
    issue,
    look_into,
    read_key,
    verify,
)
from tenuto.errors import ErrorCode, OperatorError
from tests.pure.auth.keys import ED25519, OTHER, PUBLIC, SECRET, claims, key

NOW = 1000.0
RING = KeyRing([key(), key(SECRET)])


def encoded(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def signed(payload: object, data: bytes = ED25519) -> str:
    """A token of any claims, signed as it should be."""
    made = key(data)
    assert made.signs_with is not None
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return jwt.PyJWS().encode(body, made.signs_with, algorithm=made.algorithm)


def refusal(token: str | None, ring: KeyRing = RING, now: float = NOW) -> TokenError:
    with pytest.raises(TokenError) as caught:
        authorise(ring, token, Scope.LISTEN, "abc", now)
    return caught.value


@pytest.mark.parametrize("data", [ED25519, SECRET])
@pytest.mark.parametrize("session", [None, "abc"])
def test_what_was_issued_is_what_is_read(data: bytes, session: str | None) -> None:
    given = replace(claims("listen control", session=session), not_before=500.0)
    token = issue(key(data), given)
    assert verify(token, RING, NOW) == given
    assert authorise(RING, token, Scope.CONTROL, "abc", NOW) == given


def test_a_public_key_verifies_and_does_not_sign() -> None:
    ring = KeyRing([key(PUBLIC)])
    assert verify(issue(key(), claims()), ring, NOW) == claims()
    assert ring.signer is None
    with pytest.raises(ValueError, match="signs nothing"):
        issue(key(PUBLIC), claims())


def test_another_library_reads_ours() -> None:
    token = issue(key(SECRET), claims("create listen", session="x"))
    read = jwt.decode(token, SECRET, ["HS256"], options={"verify_exp": False})
    assert read == {"scope": "listen create", "exp": 2000, "sid": "x"}


def test_the_clock_of_the_machine_is_not_asked() -> None:
    token = issue(key(), claims(expires=4.0))
    assert verify(token, RING, 3.9).expires == 4
    assert refusal(token, now=4.0).reason is Reason.EXPIRED


def test_missing() -> None:
    error = refusal(None)
    assert (error.reason, error.code) == (Reason.MISSING, ErrorCode.UNAUTHORIZED)
    assert error.challenge == 'Bearer realm="tenuto", scope="listen"'


@pytest.mark.parametrize(
    ("expires", "words"),
    [(999.5, "0 s ago"), (940.0, "60 s"), (700.0, "5 min"), (-9000.0, "2 h"), (-500000, "5 days")],
)
def test_expired_says_how_long_ago(expires: float, words: str) -> None:
    error = refusal(signed({"exp": expires, "scope": "listen"}))
    assert (error.reason, error.code) == (Reason.EXPIRED, ErrorCode.TOKEN_EXPIRED)
    assert words in error.message
    assert error.detail["expired_ago"] == NOW - expires
    assert 'error="invalid_token"' in error.challenge


def test_not_yet_valid() -> None:
    error = refusal(signed({"exp": 2000, "nbf": 1090.0, "scope": "listen"}))
    assert error.reason is Reason.NOT_YET
    assert "90 s" in error.message
    assert error.code is ErrorCode.UNAUTHORIZED


def test_of_another_session() -> None:
    error = refusal(issue(key(), claims(session="another")))
    assert (error.reason, error.code) == (Reason.OTHER_SESSION, ErrorCode.FORBIDDEN)
    assert 'error="insufficient_scope"' in error.challenge


def test_what_is_bound_to_a_session_creates_none() -> None:
    token = issue(key(), claims("create", session="abc"))
    with pytest.raises(TokenError, match="one session"):
        authorise(RING, token, Scope.CREATE, None, NOW)


def test_scope_lacking() -> None:
    error = refusal(issue(key(), claims("create control")))
    assert (error.reason, error.code) == (Reason.SCOPE, ErrorCode.FORBIDDEN)
    assert error.challenge.endswith('scope="listen"')
    assert error.detail == {"reason": "scope", "scope": "listen"}


def test_scopes_of_others_and_none_at_all_allow_nothing() -> None:
    for scope in ("admin LISTEN listening", ""):
        assert refusal(signed({"exp": 2000, "scope": scope})).reason is Reason.SCOPE
    assert refusal(signed({"exp": 2000})).reason is Reason.SCOPE


@pytest.mark.parametrize("data", [OTHER, SECRET + b"!"])
def test_a_key_that_is_not_ours(data: bytes) -> None:
    error = refusal(issue(key(data), claims()))
    assert (error.reason, error.code) == (Reason.WRONG_KEY, ErrorCode.UNAUTHORIZED)


@pytest.mark.parametrize("algorithm", ["none", "NONE", "HS512", "RS256", "x" * 99])
def test_an_algorithm_that_is_not_ours(algorithm: str) -> None:
    head = encoded({"alg": algorithm})
    for signature in ("", "AAAA"):
        error = refusal(f"{head}.{encoded({'exp': 2000})}.{signature}")
        assert error.reason is Reason.ALGORITHM
        assert "EdDSA or HS256" in error.remedy
        assert len(error.challenge) < 250


def test_a_public_key_is_no_secret() -> None:
    """The confusion of algorithms: HS256 with the public key's text as the secret."""
    forged = issue(Key("x", "HS256", PUBLIC, SECRET), claims())
    head, body, _ = forged.split(".")
    assert refusal(f"{head}.{body}.AAAA").reason is Reason.WRONG_KEY
    only = KeyRing([key(PUBLIC)])
    assert refusal(forged, only).reason is Reason.ALGORITHM


def test_a_public_key_of_ours_is_no_secret_of_others() -> None:
    """The same by hand, for a library may refuse to make such a token."""
    for secret in (PUBLIC, PUBLIC.strip(), ED25519):
        signed_part = f"{encoded({'alg': 'HS256'})}.{encoded({'exp': 2000, 'scope': 'listen'})}"
        mac = hmac.digest(secret, signed_part.encode(), "sha256")
        forged = f"{signed_part}.{encoded(mac)}"
        assert refusal(forged).reason is Reason.WRONG_KEY
        assert refusal(forged, KeyRing([key(PUBLIC)])).reason is Reason.ALGORITHM


@pytest.mark.parametrize(
    "kid", ["../../dev/null", "' OR 1=1", "\0", "x" * 2000, 7, None, True, ["a"], {"a": 1}],
    ids=lambda kid: repr(kid)[:20],
)  # fmt: skip
def test_a_key_id_chooses_among_our_keys_and_nothing_else(kid: object) -> None:
    head, body, _ = issue(key(SECRET), claims()).split(".")
    strange = encoded({"alg": "HS256", "kid": kid})
    mac = hmac.digest(SECRET, f"{strange}.{body}".encode(), "sha256")
    for token, good in ((f"{strange}.{body}.{encoded(mac)}", True), (f"{strange}.{body}.", False)):
        try:
            assert verify(token, RING, NOW) == claims()
            assert good
        except TokenError as error:
            assert error.reason in (Reason.WRONG_KEY, Reason.MALFORMED)
            assert not good or not isinstance(kid, str)
    assert head != strange


def test_of_a_claim_that_is_said_twice_the_last_counts() -> None:
    """RFC 7519 section 4 allows that; who can sign might as well say it once."""
    assert Claims.from_json(b'{"exp": 5, "exp": 2000, "scope": ""}').expires == 2000
    assert Claims.from_json(b'{"exp": 2000, "exp": -5, "scope": ""}').expires == -5
    assert refusal(signed(b'{"exp": 2000, "exp": -5, "scope": "listen"}')).reason is Reason.EXPIRED


@pytest.mark.parametrize(
    "token",
    [
        "", "a", "a.b", "a.b.c", "a.b.c.d", ".", "..", "é.é.é", "eyJ.eyJ.x",
        f"{encoded([1])}.{encoded({})}.AAAA", f"{encoded(b'no')}.{encoded({})}.AAAA",
        f"{encoded(b'[' * 3000)}.{encoded({})}.AAAA",
        f"{encoded({'alg': 'HS256', 'crit': ['b64'], 'b64': False})}..AAAA",
        "x" * (MAX_TOKEN_SIZE + 1),
    ],
)  # fmt: skip
def test_what_is_no_token(token: str) -> None:
    assert refusal(token).reason is Reason.MALFORMED


@pytest.mark.parametrize(
    "payload",
    [
        b"no json", b"[]", b"7", b"[" * 100_000, b'"\xff"', {}, {"exp": None}, {"exp": "2000"},
        {"exp": True}, b'{"exp": NaN}', b'{"exp": Infinity}', b'{"exp": 1e999}',
        b'{"exp": ' + b"9" * 400 + b"}", {"exp": 2000, "sid": 7},
        {"exp": 2000, "scope": ["listen"]},
        {"exp": 2000, "nbf": "soon"}, {"exp": 2000, "nbf": False},
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_claims_that_cannot_be_used(payload: object) -> None:
    assert _refused_claims(payload).reason is Reason.MALFORMED


def _refused_claims(payload: object) -> TokenError:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with pytest.raises(TokenError) as caught:
        Claims.from_json(body)
    return caught.value


def test_every_bit_counts() -> None:
    token = issue(key(SECRET), claims())
    head, body, signature = token.split(".")
    longer = encoded({"exp": 9999, "scope": "listen"})
    assert refusal(f"{head}.{longer}.{signature}").reason is Reason.WRONG_KEY
    assert refusal(f"{head}.{body}.").reason is Reason.WRONG_KEY


@given(st.text(max_size=300))
def test_no_text_is_taken_for_a_token(text: str) -> None:
    assert refusal(text).code is ErrorCode.UNAUTHORIZED


@given(st.binary(max_size=100), st.binary(max_size=100), st.binary(max_size=70))
def test_no_bytes_are_either(head: bytes, body: bytes, signature: bytes) -> None:
    token = f"{encoded(head)}.{encoded(body)}.{encoded(signature)}"
    assert refusal(token).code is ErrorCode.UNAUTHORIZED


def test_the_right_key_is_found_by_its_id_and_without_one_all_are_tried() -> None:
    ring = KeyRing([key(), key(OTHER)])
    assert look_into(issue(key(OTHER), claims()))[1] == key(OTHER).id
    assert verify(issue(key(OTHER), claims()), ring, NOW) == claims()
    assert verify(signed({"exp": 2000}, OTHER), ring, NOW).expires == 2000
    assert refusal(signed({"exp": 2000}, ED25519), KeyRing([key(OTHER)])).reason is Reason.WRONG_KEY


def test_the_first_key_that_can_signs() -> None:
    assert KeyRing([key(PUBLIC), key(SECRET), key()]).signer == key(SECRET)
    assert key().id == key(PUBLIC).id


def test_the_bounds_of_a_ring() -> None:
    assert KeyRing([key()] * MAX_KEYS).algorithms() == ["EdDSA"]
    for keys in ([], [key()] * (MAX_KEYS + 1)):
        with pytest.raises(OperatorError, match="token keys"):
            KeyRing(keys)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes"),
        (SECRET[:-1] + b"\r\n", "31 bytes"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no Ed25519"),
        (ED25519.replace(b"MC4C", b"MC4D"), "no Ed25519"),
        (b"-----BEGIN PRIVATE KEY-----\xff", "no Ed25519"),
    ],
)
def test_what_is_no_key(data: bytes, words: str) -> None:
    with pytest.raises(OperatorError, match=words) as caught:
        key(data)
    assert "k.pem" in str(caught.value)
    assert "tenuto token --new-key" in caught.value.remedy


def test_a_key_of_another_curve_is_named() -> None:
    script = """
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.serialization import *
print(Ed448PrivateKey.generate().private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    with pytest.raises(OperatorError, match="Ed448, not Ed25519"):
        read_key(made, "k.pem")


def test_twice_is_the_clients_mistake() -> None:
    error = TokenError(Reason.TWICE, 'said "twice" \\ é', remedy="send one")
    assert error.code is ErrorCode.BAD_REQUEST
    assert error.challenge.endswith(
        'error="invalid_request", error_description="said \'twice\' ? ?"'
    )


def test_a_key_is_not_shown_with_its_secret() -> None:
    assert SECRET.decode() not in repr(key(SECRET))
