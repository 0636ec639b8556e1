"""Every kind of bad request, on both doors: a clear answer, and the server unharmed."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tenuto.telemetry.events import Event, PeerFaulted
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon

RECORDS = "Accept: application/vnd.tenuto.records; v=1"

BAD = [
    # path, status, code, a word of the message
    ("/nowhere", 404, "unknown-route", "/nowhere"),
    ("/v1/speak/", 404, "unknown-route", "/v1/speak/"),
    ("/v1/speak", 400, "bad-request", "what to play"),
    ("/v1/speak?text=", 400, "bad-text", ""),
    ("/v1/speak?text=%20%20", 400, "bad-text", ""),
    ("/v1/speak?text=%ED%A0%80", 400, "bad-text", "UTF-8"),
    ("/v1/speak?text=%FF", 400, "bad-text", "0xff"),
    ("/v1/speak?text=hi&lang=klingon", 400, "unknown-voice", "klingon"),
    ("/v1/speak?text=hi&txt=ho", 400, "bad-request", "txt"),
    ("/v1/speak?text=hi&text=ho", 400, "bad-request", "twice"),
    ("/v1/speak?text=hi&lead=soon", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=-1", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=nan", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=1e9", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=1_0", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=%201", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&lead=%D9%A1", 400, "bad-request", "lead"),
    ("/v1/speak?text=hi&listener=" + "x" * 65, 400, "bad-request", "listener"),
    ("/v1/speak?text=hi&listener=%00", 400, "bad-request", "listener"),
    ("/v1/speak?tone=abc", 400, "bad-request", "tone"),
    ("/v1/speak?tone=440&rate=11025", 415, "unsupported-audio", "11025"),
    ("/v1/speak?source=nothing", 400, "bad-request", "nothing"),
    ("/v1/speak?file=gone.wav", 404, "unknown-file", "gone.wav"),
    ("/v1/speak?file=../secret.wav", 404, "unknown-file", ""),
    ("/v1/speak?file=notes.txt", 415, "unsupported-audio", ""),
    ("/v1/speak?" + "&".join(f"a{n}=1" for n in range(40)), 400, "bad-request", "32"),
    ("/v1/sessions/unknown/audio", 404, "unknown-session", "unknown"),
    ("/v1/sessions/unknown/audio?from=abc", 400, "bad-request", "from"),
    ("/v1/sessions/unknown/audio?from=-1", 400, "bad-request", "from"),
    ("/v1/sessions/unknown/audio?from=" + "9" * 40, 400, "bad-request", "from"),
    ("/v1/sessions/unknown/audio?epoch=%EF%BC%91", 400, "bad-request", "epoch"),
]


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    folder.mkdir()
    (folder / "notes.txt").write_text("no audio at all, whatever the name may be" * 10)
    (tmp_path / "secret.wav").write_bytes(b"RIFF")
    return folder


@pytest.mark.parametrize("door", DOORS)
async def test_bad_requests_are_named_and_harm_nobody(
    door: str, start_server: StartServer, media: Path, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server(media=media)
    for path, status, code, word in BAD:
        answer = await fetch_soon(door, server.port, path, ca=ca_file)
        assert answer.status == status, (path, answer)
        assert answer.headers["content-type"] == "application/problem+json"
        facts = answer.json
        assert facts["status"] == status
        assert facts["code"] == code, (path, facts)
        assert word in facts["detail"] + facts["remedy"], (path, facts)
        assert facts["remedy"], path
        assert "Traceback" not in answer.body.decode()
    assert server.host.tally.sessions_opened == 0
    assert len(server.host) == 0
    assert not [event for event in events if isinstance(event, PeerFaulted)]
    good = await fetch_soon(door, server.port, "/v1/speak?text=Well", ca=ca_file)
    assert good.status == 200
    assert len(good.body) > 10_000


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad-request"),
        (b"not json", "bad-request"),
        (b"[1]", "bad-request"),
        (b'"text"', "bad-request"),
        (b"[" * 100_000, "bad-request"),
        (b'{"text": null}', "bad-request"),
        (b'{"text": ["a"]}', "bad-request"),
        (b'{"text": true}', "bad-request"),
        (b'{"text": "a", "text": "b"}', "bad-request"),
        (b'{"text": ""}', "bad-text"),
        (b'{"text": "\\ud800"}', "bad-text"),
        (b'{"text": "a\\udc00b"}', "bad-text"),
        (b"\xff\xfe\x00", "bad-request"),
        (json.dumps({"text": "many words " * 10_000}).encode(), "too-large"),
        (b'{"tone": ' + b"9" * 5_000 + b"}", "bad-request"),
        (b'{"text": "' + b"x" * 400_000 + b'"}', "too-large"),
    ],
    ids=lambda value: repr(value[:24]),
)
async def test_bad_bodies_are_named(
    door: str, body: bytes, code: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    answer = await fetch_soon(door, server.port, "/v1/speak", ca=ca_file, method="POST", body=body)
    assert answer.json["code"] == code, answer
    assert answer.status == answer.json["status"]
    assert "set_int_max_str_digits" not in answer.json["detail"]
    assert server.host.tally.sessions_opened == 0


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", ["I", "é", "你好。", "a" * 2, "😀 Hi", "Hello\u0000world"])
async def test_short_and_foreign_text_is_spoken_or_refused(
    door: str, text: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    for method, path, body in (
        ("GET", f"/v1/speak?text={quote(text)}", None),
        ("POST", "/v1/speak", json.dumps({"text": text}).encode()),
    ):
        answer = await fetch_soon(door, server.port, path, ca=ca_file, method=method, body=body)
        assert answer.status in (200, 400), (text, answer.body[:200])
        assert (answer.status == 200) == (answer.headers["content-type"] == "audio/wav")
        assert answer.result == 0


@pytest.mark.parametrize("door", DOORS)
async def test_a_header_block_too_large_is_refused(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    for size in (17_000, 70_000, 300_000):
        answer = await fetch_soon(
            door, server.port, "/healthz", ca=ca_file, headers=("X-Long: " + "a" * size,)
        )
        assert answer.status in (0, 431) or size < 65_536, (size, answer)
    assert (await fetch_soon(door, server.port, "/healthz", ca=ca_file)).status == 200


@pytest.mark.parametrize("door", DOORS)
async def test_head_and_options_start_nothing(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    head = await fetch_soon(door, server.port, "/v1/speak?text=Hi", ca=ca_file, method="HEAD")
    assert head.status == 200
    assert head.headers["content-type"] == "audio/wav"
    assert head.body == b""
    bad = await fetch_soon(door, server.port, "/v1/speak?text=", ca=ca_file, method="HEAD")
    assert bad.status == 400
    for path in ("/v1/speak?text=Hi", "/v1/sessions", "/metrics"):
        options = await fetch_soon(door, server.port, path, ca=ca_file, method="OPTIONS")
        assert options.status == 204
        assert "OPTIONS" in options.headers["allow"]
    for method in ("DELETE", "PUT", "PATCH", "TRACE", "BREW"):
        answer = await fetch_soon(door, server.port, "/v1/speak", ca=ca_file, method=method)
        assert answer.status == 405, method
        assert answer.json["code"] == "method-not-allowed"
    assert server.host.tally.sessions_opened == 0


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_listener_accepts_decides_the_encoding(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = "/v1/speak?tone=440&seconds=0.1"

    async def accept(value: str) -> tuple[int, str, bytes]:
        answer = await fetch_soon(
            door, server.port, path, ca=ca_file, headers=(f"Accept: {value}",)
        )
        return answer.status, answer.headers["content-type"], answer.body

    status, kind, records = await accept("application/vnd.tenuto.records; v=1")
    assert (status, kind) == (200, "application/vnd.tenuto.records; v=1")
    assert records[0] == 1
    status, kind, wav = await accept("*/*")
    assert (status, kind, wav[:4]) == (200, "audio/wav", b"RIFF")
    assert len(wav) == 44 + 3200
    status, kind, l16 = await accept("audio/L16, audio/wav;q=0.5")
    assert (status, kind) == (200, "audio/L16;rate=16000;channels=1")
    assert l16[0::2] == wav[45::2]
    assert l16[1::2] == wav[44::2]
    assert (await accept("text/html"))[0] == 406
    assert (await accept("application/vnd.tenuto.records; v=2"))[0] == 406
    assert (await accept("audio/wav;q=0, */*;q=0.1"))[1] != "audio/wav"


@pytest.mark.parametrize("door", DOORS)
async def test_streams_are_kept_from_being_held_back_or_changed(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    answer = await fetch_soon(door, server.port, "/v1/speak?tone=440", ca=ca_file)
    assert answer.headers["x-accel-buffering"] == "no"
    assert "no-transform" in answer.headers["cache-control"]
    assert "content-length" not in answer.headers
    assert "content-encoding" not in answer.headers
    assert answer.headers["alt-svc"] == f'h3=":{server.port}"; ma=86400'
    assert len(answer.headers["tenuto-session"]) == 32


@pytest.mark.parametrize("door", DOORS)
async def test_a_bug_of_ours_is_answered_500_and_told_to_the_log_alone(
    door: str,
    start_server: StartServer,
    ca_file: Path,
    events: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tenuto.web.routes

    def stumble(*arguments: object) -> None:
        raise ZeroDivisionError("nobody's business")

    monkeypatch.setattr(tenuto.web.routes, "check_origin", stumble)
    server = await start_server()
    answer = await fetch_soon(door, server.port, "/v1/speak?text=Hi", ca=ca_file)
    assert answer.status == 500
    assert answer.json["code"] == "internal"
    assert "nobody's business" not in answer.body.decode()
    (fault,) = [event for event in events if isinstance(event, PeerFaulted)]
    assert "nobody's business" in fault.fault
    assert "test_requests.py" in fault.place
    assert (await fetch_soon(door, server.port, "/healthz", ca=ca_file)).status == 200


@pytest.mark.parametrize("door", DOORS)
async def test_other_origins_and_borrowed_names_start_nothing(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    here = f"https://localhost:{server.port}"

    async def ask(*headers: str, method: str = "GET") -> str:
        answer = await fetch_soon(
            door,
            server.port,
            "/v1/speak?tone=440&seconds=0.02",
            ca=ca_file,
            headers=headers,
            method=method,
        )
        return "ok" if answer.status == 200 else str(answer.json["code"])

    assert await ask() == "ok"
    assert await ask(f"Origin: {here}") == "ok"
    assert await ask(f"Origin: {here.upper()}") == "ok"
    for origin in (
        "https://evil.example",
        "null",
        f"http://localhost:{server.port + 1}",
        "file://",
        "https://[",
    ):
        assert await ask(f"Origin: {origin}") == "foreign-origin", origin
        assert await ask(f"Origin: {origin}", method="POST") == "foreign-origin", origin
    for host in ("evil.example", f"evil.example:{server.port}", "localhost.evil.example", "[::"):
        assert await ask(f"Host: {host}") in ("misdirected", "bad-request"), host
    assert server.host.tally.sessions_opened == 3


async def test_the_share_of_quic_is_per_client_and_says_so(
    start_server: StartServer, ca_file: Path
) -> None:
    from tenuto.policy import QuicShare

    server = await start_server(quic=QuicShare(50))
    offers = set()
    for number in range(20):
        client = f"Tenuto-Client: phone-{number}"
        answers = [
            await fetch_soon("tcp", server.port, "/v1/transport", ca=ca_file, headers=(client,))
            for _ in range(2)
        ]
        assert answers[0].json == answers[1].json
        offered = answers[0].json["quic"]
        assert (answers[0].headers["alt-svc"] == "clear") is not offered
        offers.add(offered)
    assert offers == {True, False}


async def test_quic_off_opens_no_udp_door(start_server: StartServer, ca_file: Path) -> None:
    from tenuto.policy import QuicShare

    server = await start_server(quic=QuicShare(0))
    answer = await fetch_soon("tcp", server.port, "/v1/transport", ca=ca_file)
    assert answer.json == {"quic": False}
    assert "alt-svc" not in answer.headers
    refused = await fetch_soon("quic", server.port, "/healthz", ca=ca_file, timeout=1.0)
    assert refused.result != 0


@pytest.mark.parametrize("door", DOORS)
async def test_a_client_learns_the_address_it_is_seen_at(
    start_server: StartServer, ca_file: Path, door: str
) -> None:
    server = await start_server()
    answers = [await fetch_soon(door, server.port, "/v1/address", ca=ca_file) for _ in range(2)]
    assert answers[0].headers["cache-control"] == "no-store"
    facts = [answer.json for answer in answers]
    assert {each["transport"] for each in facts} == {door}
    assert {each["address"] for each in facts} <= {"127.0.0.1", "::1"}
    assert all(1024 <= each["port"] < 65536 for each in facts)
    assert facts[0]["port"] != facts[1]["port"]


async def test_certificate_hashes_are_those_of_the_leaf(
    start_server: StartServer, ca_file: Path
) -> None:
    import base64

    server = await start_server()
    answer = await fetch_soon("quic", server.port, "/v1/certificate-hashes", ca=ca_file)
    hashes = [base64.b64decode(each) for each in answer.json["hashes"]]
    assert hashes[0] == server._keeper.certificate.sha256
    assert len(hashes) == 2
