"""What the server gets to see."""

from __future__ import annotations

import json

from tenuto.client import Transport, Trust, open_stream
from tests.client.authority import Pair
from tests.client.peer import sentence, serving, whole


async def test_what_is_asked_travels(pair: Pair, trust: Trust, transport: Transport) -> None:
    async with serving(pair, whole(sentence(1))) as peer:
        params: dict[str, str | float] = {"text": "Grüße & mehr", "rate": 1.5}
        for method in ("GET", "POST"):
            async with open_stream(
                peer.url(path="/v1/speak"),
                method=method,
                transport=transport,
                params=params,
                lead="max",
                listener="ear",
                trust=trust,
            ) as stream:
                [frame async for frame in stream]
    get, post = (asked for _, asked in peer.asked)
    assert get.path == "/v1/speak?text=Gr%C3%BC%C3%9Fe+%26+mehr&rate=1.5&lead=max&listener=ear"
    assert get.headers["accept"] == "application/vnd.tenuto.records; v=1"
    assert post.path == "/v1/speak"
    assert json.loads(post.body) == {**params, "lead": "max", "listener": "ear"}


async def test_a_long_text_is_posted_whole(pair: Pair, trust: Trust, transport: Transport) -> None:
    text = "Ein langer Satz. " * 40_000
    async with (
        serving(pair, whole(sentence(1))) as peer,
        open_stream(
            peer.url(path="/v1/speak"),
            method="POST",
            transport=transport,
            params={"text": text},
            trust=trust,
        ) as stream,
    ):
        [frame async for frame in stream]
    assert json.loads(peer.asked[0][1].body)["text"] == text
