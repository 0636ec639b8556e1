"""Tokens on both doors: each refusal told apart, and none of them ever in a log line."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from bench.process import ServerProcess
from quicserver.app import Server
from tenuto.auth import Claims, Scope, issue
from tenuto.errors import OperatorError
from tenuto.keyfiles import load_key, make_key
from tenuto.settings import ServerSettings
from tests.conftest import StartServer
from tests.support.fetch import DOORS, Answer, fetch, fetch_soon

SPEAK = "/v1/speak?source=counting&frames=3"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "token.pem")
    return tmp_path / "token.pem"


def token(
    key: Path, scope: str, *, session: str | None = None, expires: float = 60.0, begins: float = 0.0
) -> str:
    scopes = frozenset(Scope(word) for word in scope.split())
    now = time.time()
    nbf = now + begins if begins else None
    return issue(load_key(key), Claims(scopes, now + expires, session, nbf))


async def ask(
    door: str, server: Server, path: str, given: str | None, ca: Path, **more: Any
) -> Answer:
    headers = (f"Authorization: Bearer {given}",) if given is not None else ()
    return await fetch_soon(door, server.port, path, ca=ca, headers=headers, **more)


@pytest.mark.parametrize("door", DOORS)
async def test_every_route_that_costs_or_tells_asks_for_its_scope(
    door: str, start_server: StartServer, ca_file: Path, key: Path
) -> None:
    server = await start_server(token_keys=(key,))
    create, listen = token(key, "create"), token(key, "listen")
    made = await ask(door, server, "/v1/sessions?source=counting&frames=3", create, ca_file,
                     method="POST", body=b"")  # fmt: skip
    assert made.status == 201
    session = made.json["session"]
    audio = f"/v1/sessions/{session}/audio"
    control = f"/v1/sessions/{session}/control?command=pause"
    post: dict[str, Any] = {"method": "POST", "body": b""}
    none: dict[str, Any] = {}
    assert (await ask(door, server, SPEAK, create, ca_file)).status == 200
    for path, wrong, more in [
        (SPEAK, listen, none),
        (SPEAK, listen, {"method": "HEAD"}),
        ("/v1/sessions?source=counting", listen, post),
        (audio, create, none),
        (audio, token(key, "control"), none),
        (control, listen, post),
        (control, token(key, "control", session="another"), post),
        (audio, token(key, "listen", session="another"), none),
    ]:
        answer = await ask(door, server, path, wrong, ca_file, **more)
        assert answer.status == 403, (path, answer)
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
        answer = await ask(door, server, path, None, ca_file, **more)
        assert answer.status == 401, (path, answer)
        assert answer.headers["www-authenticate"].startswith('Bearer realm="tenuto", scope=')
    for right in (listen, token(key, "listen", session=session), made.json["token"]):
        assert (await ask(door, server, audio, right, ca_file)).status == 200
    assert (await ask(door, server, control, made.json["token"], ca_file, **post)).status == 200
    for path in ("/", "/healthz", "/readyz", "/v1/sources", "/v1/transport", "/metrics"):
        assert (await ask(door, server, path, None, ca_file)).status == 200, path


@pytest.mark.parametrize("door", DOORS)
async def test_each_way_not_to_do_is_told_apart(
    door: str, start_server: StartServer, ca_file: Path, key: Path, tmp_path: Path
) -> None:
    server = await start_server(token_keys=(key,))
    make_key(tmp_path / "other.pem")
    good = token(key, "create")
    for given, code, reason in [
        (None, "unauthorized", "missing"),
        ("nonsense", "unauthorized", "malformed"),
        ("eyJhbGciOiJub25lIn0.eyJleHAiOjl9.", "unauthorized", "algorithm"),
        (token(tmp_path / "other.pem", "create"), "unauthorized", "wrong-key"),
        (token(key, "create", expires=-90), "token-expired", "expired"),
        (token(key, "create", begins=30), "unauthorized", "not-yet-valid"),
        (token(key, "listen"), "forbidden", "scope"),
    ]:
        answer = await ask(door, server, SPEAK, given, ca_file)
        assert (answer.json["code"], answer.json["reason"]) == (code, reason)
        assert "www-authenticate" in answer.headers
        assert given is None or given not in answer.body.decode()
    twice = await ask(door, server, f"{SPEAK}&token={good}", good, ca_file)
    assert (twice.status, twice.json["code"]) == (400, "bad-request")
    expired = await ask(door, server, SPEAK, token(key, "create", expires=-630), ca_file)
    assert "10 min ago" in expired.json["detail"]
    assert 629 < expired.json["expired_ago"] < 650
    basic = await fetch_soon(
        door, server.port, SPEAK, ca=ca_file, headers=("Authorization: Basic abcd",)
    )
    assert basic.json["reason"] == "malformed"
    assert server.host.tally.sessions_opened == 0


@pytest.mark.parametrize("door", DOORS)
async def test_a_token_in_the_query_does_too(
    door: str, start_server: StartServer, ca_file: Path, key: Path
) -> None:
    server = await start_server(token_keys=(key,))
    answer = await fetch_soon(
        door, server.port, f"{SPEAK}&token={token(key, 'create')}", ca=ca_file
    )
    assert answer.status == 200
    session, own = answer.headers["tenuto-session"], answer.headers["tenuto-token"]
    again = f"/v1/sessions/{session}/audio?from=0&token={own}"
    assert (await fetch_soon(door, server.port, again, ca=ca_file)).status == 200
    assert (await fetch_soon(door, server.port, f"{SPEAK}&token={own}", ca=ca_file)).status == 403


@pytest.mark.parametrize("door", DOORS)
async def test_a_stream_outlasts_its_token_and_a_resume_does_not(
    door: str, start_server: StartServer, ca_file: Path, key: Path
) -> None:
    server = await start_server(token_keys=(key,))
    short = token(key, "create listen", expires=1.0)  # A token's times are whole seconds.
    path = "/v1/speak?source=counting&frames=160&lead=0.2"
    answer = await ask(door, server, path, short, ca_file)
    assert answer.status == 200
    assert answer.problem == ""
    audio = f"/v1/sessions/{answer.headers['tenuto-session']}/audio?from=0"
    again = await ask(door, server, audio, short, ca_file)
    assert (again.status, again.json["code"]) == (401, "token-expired")


@pytest.fixture
def public(key: Path) -> Path:
    """The public half alone."""
    private = load_pem_private_key(key.read_bytes(), None)
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (key.parent / "public.pem").write_bytes(pem)
    return key.parent / "public.pem"


async def test_a_key_that_cannot_sign_gives_no_tokens(
    start_server: StartServer, ca_file: Path, key: Path, public: Path
) -> None:
    server = await start_server(token_keys=(public,))
    answer = await ask("tcp", server, SPEAK, token(key, "create"), ca_file)
    assert answer.status == 200
    assert "tenuto-token" not in answer.headers


async def test_without_a_key_a_token_means_nothing(
    start_server: StartServer, ca_file: Path, key: Path
) -> None:
    server = await start_server()
    for given in (token(key, "listen"), "nonsense"):
        answer = await ask("tcp", server, f"{SPEAK}&token={given}", None, ca_file)
        assert answer.status == 200
        assert "tenuto-token" not in answer.headers


async def test_the_keys_of_a_rotation(
    start_server: StartServer, ca_file: Path, key: Path, tmp_path: Path
) -> None:
    make_key(tmp_path / "old.pem")
    server = await start_server(token_keys=(key, tmp_path / "old.pem"))
    for each in (key, tmp_path / "old.pem"):
        assert (await ask("tcp", server, SPEAK, token(each, "create"), ca_file)).status == 200


def test_other_addresses_want_a_key(key: Path) -> None:
    with pytest.raises(OperatorError, match="token"):
        ServerSettings(hosts=("0.0.0.0",))  # noqa: S104
    assert ServerSettings(hosts=("0.0.0.0",), token_keys=(key,)).hosts  # noqa: S104


async def test_metrics_are_for_this_machine_or_for_who_controls_all(
    start_server: StartServer, ca_file: Path, key: Path
) -> None:
    """Asked by the app itself, for nobody here can come from afar."""
    server = await start_server(token_keys=(key,))
    app = server._tcp._app.app._app  # type: ignore[attr-defined]

    async def status(client: tuple[str, int], given: str | None) -> int:
        said: list[int] = []
        headers = [(b"authorization", f"Bearer {given}".encode())] if given else []
        scope = {
            "type": "http", "method": "GET", "path": "/metrics", "query_string": b"",
            "headers": headers, "client": client, "http_version": "1.1", "scheme": "https",
            "root_path": "", "server": ("x", 1),
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            said.append(message.get("status", 0))

        await app(scope, receive, send)
        return said[0]

    afar = ("192.0.2.7", 5)
    assert await status(("127.0.0.1", 5), None) == 200
    assert await status(("::1", 5), None) == 200
    assert await status(afar, None) == 401
    assert await status(("nonsense", 5), None) == 401
    assert await status(afar, token(key, "listen create")) == 403
    assert await status(afar, token(key, "control", session="abc")) == 403
    assert await status(afar, token(key, "control")) == 200


def test_no_line_of_a_busy_servers_log_holds_a_token(
    server_process: Callable[..., ServerProcess], key: Path
) -> None:
    server = server_process("--token-key", str(key), "--grace", "0.5")
    secrets = []
    for door in DOORS:
        for scope, path in [
            ("create", SPEAK), ("listen", SPEAK), ("create", "/v1/speak?token="),
            ("create", "/nowhere?x=1&token="), ("create", "/v1/speak?source=model&fail_after=1"),
            ("listen control create", "/v1/sessions/%00/audio"), ("listen", "/%ff/token="),
        ]:  # fmt: skip
            given = token(key, scope)
            secrets.append(given)
            joined = path + given if path.endswith("token=") else f"{path}&token={given}"
            answers = [
                fetch(door, server.port, joined, ca=server.ca),
                fetch(door, server.port, path, ca=server.ca,
                      headers=(f"Authorization: Bearer {given}",)),
                fetch(door, server.port, joined + "%", ca=server.ca, method="POST",
                      body=f'{{"text": "{given}", "token": "{given}"}}'.encode()),
            ]  # fmt: skip
            secrets += [a.headers["tenuto-token"] for a in answers if "tenuto-token" in a.headers]
            for answer in answers:
                assert answer.status != 500
                if answer.status >= 400:
                    assert given not in answer.body.decode()
    assert len(secrets) > 14
    assert server.stop() == 0
    log = str(server.log)
    assert "SessionOpened" in log
    assert not [secret for secret in secrets if secret in log or secret.split(".")[1] in log]
