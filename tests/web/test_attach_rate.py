"""Who comes too early is told its own time, exactly in the body and in whole seconds above."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.errors import OperatorError
from tenuto.settings import ServerSettings
from tenuto.telemetry.events import ConnectionRefused, Event
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon


@pytest.mark.parametrize("door", DOORS)
async def test_attaches_beyond_the_rate_are_refused_with_a_time_each(
    door: str, start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server(attach_rate=0.5, attach_burst=4)
    path = "/v1/speak?source=counting&frames=3"
    head = await fetch_soon(door, server.port, path, ca=ca_file, method="HEAD")
    assert head.status == 200
    answers = [await fetch_soon(door, server.port, path, ca=ca_file) for _ in range(7)]
    assert [answer.status for answer in answers] == [200] * 4 + [503] * 3
    refused = answers[4:]
    assert {answer.json["code"] for answer in refused} == {"at-capacity"}
    waits = [answer.json["retry_after"] for answer in refused]
    assert [int(a.headers["retry-after"]) - w for a, w in zip(refused, waits, strict=True)] == [
        pytest.approx(0.5, abs=0.5)
    ] * 3
    # The slots lie 2 s apart, less what the answers took.
    assert 1 < waits[1] - waits[0] <= 2.001
    assert 1 < waits[2] - waits[1] <= 2.001
    told = [event for event in events if isinstance(event, ConnectionRefused)]
    assert [event.door for event in told] == ["app"]
    metrics = await fetch_soon(door, server.port, "/metrics", ca=ca_file)
    assert b"tenuto_attaches_refused_total 3.0" in metrics.body
    for other in ("/healthz", "/v1/sources"):
        assert (await fetch_soon(door, server.port, other, ca=ca_file)).status == 200


async def test_a_resume_and_a_session_count_too(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server(attach_rate=0.1, attach_burst=1)
    made = await fetch_soon(
        "tcp", server.port, "/v1/sessions?source=counting", ca=ca_file, method="POST", body=b""
    )
    assert made.status == 201
    audio = await fetch_soon("tcp", server.port, made.json["audio"], ca=ca_file)
    assert (audio.status, audio.json["code"]) == (503, "at-capacity")


@pytest.mark.parametrize(
    "settings",
    [{"attach_rate": 0}, {"attach_burst": 0.5}, {"grace": -1}, {"grace": float("nan")},
     {"wait_for_port": 1e9}, {"node": "A"}, {"node": "x" * 17}, {"peers": {"": "https://a"}}],
    ids=str,
)  # fmt: skip
def test_settings_that_make_no_sense(settings: dict[str, float]) -> None:
    with pytest.raises(OperatorError):
        ServerSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("peers", [["a"], ["a=http://b"], ["a=https://"], ["a=https://b"] * 2])
def test_peers_that_make_no_sense(peers: list[str]) -> None:
    with pytest.raises(OperatorError, match="peer"):
        ServerSettings.parse_peers(peers)


def test_peers() -> None:
    assert ServerSettings.parse_peers(["b=https://b.example:4433/"]) == {
        "b": "https://b.example:4433"
    }
