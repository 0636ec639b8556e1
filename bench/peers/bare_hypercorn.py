"""A bare hypercorn server: an ASGI app that sleeps until each group is due, HTTP/1.1 over TLS."""

from __future__ import annotations

import argparse
import asyncio
import socket

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from bench.peers.work import group_size, payload, schedule


async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    streaming = asyncio.create_task(_stream(group_size(scope["query_string"].decode()), send))
    while (await receive())["type"] != "http.disconnect":
        pass
    streaming.cancel()
    await asyncio.wait([streaming])


async def _stream(group: int, send: ASGISendCallable) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": False})
    loop = asyncio.get_running_loop()
    began = loop.time()
    for due, first, count in schedule(group):
        if due:
            await asyncio.sleep(began + due - loop.time())
        await send({"type": "http.response.body", "body": payload(first, count), "more_body": True})


async def _main(certificate: str, key: str) -> None:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(512)
    config = Config()
    config.bind = [f"fd://{bound.fileno()}"]
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["http/1.1"]
    config.loglevel = "ERROR"
    print(bound.getsockname()[1], flush=True)
    await serve(app, config, shutdown_trigger=asyncio.Event().wait)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("certificate")
    parser.add_argument("key")
    options = parser.parse_args()
    uvloop.run(_main(options.certificate, options.key))
