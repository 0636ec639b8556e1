"""The client of docs/minimal-client.md, cut off again and again: it must hear every sample."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import Callable
from pathlib import Path

from bench.process import ServerProcess
from tenuto.sources.tone import ToneSource
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "minimal-client.md"
ASKED = '"text": "A note that is cut off is taken up again."'
SEED = 6


class CuttingRelay:
    """TCP to a server that breaks each connection after a random time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._random = random.Random(SEED)
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, back = await asyncio.open_connection("127.0.0.1", self._port)
        roads = asyncio.gather(_copy(reader, back), _copy(upstream, writer))
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(self._random.uniform(0.1, 0.5)):
                await roads
                return
        self.cuts += 1
        for each in (writer, back):
            each.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write_eof() if writer.can_write_eof() else None


async def test_the_minimal_client_hears_every_sample(
    server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = await asyncio.to_thread(server_process)
    relay = CuttingRelay(server.port)
    listening = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    said = await heard_by(client(port, server.ca), tmp_path)
    listening.close()
    assert relay.cuts >= 3
    assert said == await truth(tmp_path)


async def test_it_goes_on_where_only_the_name_of_its_session_has_come(
    server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = await asyncio.to_thread(server_process)
    made = await asyncio.to_thread(server.post, "/v1/sessions?tone=440&seconds=4")
    begin = "heard, attempt, until = Heard(), 0, time.monotonic() + 60\n"
    code = client(server.port, server.ca)
    assert begin in code
    code = code.replace(begin, f"{begin}heard.session = {made['session']!r}\n")
    assert await heard_by(code, tmp_path) == await truth(tmp_path)


def client(port: int, ca: Path) -> str:
    (block,) = (each for each in blocks(PAGE) if each.language == "python")
    assert ASKED in block.text
    code = block.text.replace(ASKED, '"tone": 440, "seconds": 4, "lead": 0.4')
    return code.replace("4433", str(port)).replace("certs/dev/ca.pem", str(ca))


async def heard_by(code: str, folder: Path) -> str:
    """What it says; it gives up by itself."""
    (folder / "client.py").write_text(code, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "client.py", cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 90)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0
    return said.decode()


async def truth(folder: Path) -> str:
    """What it is to say, if it has heard every sample."""
    samples = b"".join([run async for run in ToneSource(seconds=4).stream()])
    assert (folder / "heard.raw").read_bytes() == samples
    return f"200 frames, {len(samples)} bytes, all of it\n"
