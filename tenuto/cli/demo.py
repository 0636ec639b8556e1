"""`scripts/demo`: a server, a sentence over QUIC and over TCP, and what it took."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import click
from rich.console import Console
from rich.table import Table

from tenuto.cli.main import cli
from tenuto.client import TransportChoice, Trust, open_stream
from tenuto.errors import OperatorError
from tenuto.media import FRAME_DURATION

__all__ = ["demo"]

_SENTENCE = "Every note is held for its full value."
_OPENED = re.compile(r"DoorOpened door=(?P<door>\w+) address=\S*:(?P<port>\d+)")
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Measured:
    """One sentence over one transport; times in seconds."""

    transport: str
    handshake: float
    first_audio: float
    frames: int
    gaps: int


@click.command()
@click.option("--once", is_flag=True, help="End when the table is printed.")
@click.option("--port", default=4433, show_default=True, help="UDP and TCP; 0 for any free one.")
@click.option("--text", default=_SENTENCE, show_default=True, help="What is said.")
@click.option("--lang", default="en", show_default=True, help="Its language, such as cmn.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON lines.")
def demo(once: bool, port: int, text: str, lang: str, as_json: bool) -> None:
    """Start a server on this machine and have it say a sentence over QUIC and over TCP.

    The server stays, with lines to paste, until Ctrl-C.
    """
    console = Console(stderr=as_json)
    for name in ("SIGTERM", "SIGHUP"):
        # As Ctrl-C does: the server must not outlive us. Windows has no SIGHUP.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: sys.exit(128 + number))
    certificates = (_PROJECT if (_PROJECT / "certs").is_dir() else Path.cwd()) / "certs" / "dev"
    server = _Server(port, certificates)
    try:
        url = f"https://localhost:{server.port}"
        console.print(f"Tenuto serves {url} over UDP and TCP, on this machine only.")
        results = asyncio.run(_measure(url, text, lang, certificates / "ca.pem"))
        if as_json:
            for result in results:
                click.echo(json.dumps({name: getattr(result, name) for name in _FIELDS}))
        else:
            console.print(_table(results))
        if not once:
            # Not through rich: lines to paste must not be wrapped.
            click.echo(_hints(server.port, certificates / "ca.pem"), err=as_json)
            server.follow()
    finally:
        server.stop()


_FIELDS = ("transport", "handshake", "first_audio", "frames", "gaps")


class _Server:
    """`tenuto serve` as a process of its own, so that the client's figures are its own too."""

    def __init__(self, port: int, certificates: Path) -> None:
        command = [sys.executable, "-P", "-m", "quicserver", "--log", "text"]
        command += ["--port", str(port), "--certs-dir", str(certificates)]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.port = self._wait_for_doors()

    def _wait_for_doors(self) -> int:
        doors: set[str] = set()
        said = ""
        while line := self._read_line():
            opened = _OPENED.search(line)
            if opened is None:
                said = line.strip()
                continue
            doors.add(opened["door"])
            if doors >= {"quic", "tcp"}:
                return int(opened["port"])
        self._process.wait()
        raise OperatorError(
            said.removeprefix("tenuto: ") or "the server ended before it opened its doors"
        )

    def _read_line(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def follow(self) -> None:
        """Stay until the server ends or Ctrl-C; its log passes through."""
        while line := self._read_line():
            click.echo(line, nl=False, err=True)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


async def _measure(url: str, text: str, lang: str, ca: Path) -> list[Measured]:
    transports: tuple[TransportChoice, ...] = ("quic", "tcp")
    # The first sentence of a process also starts the engine; that is not the transport's.
    await _listen(url, "Well.", lang, ca, "tcp")
    return [await _listen(url, text, lang, ca, transport) for transport in transports]


async def _listen(url: str, text: str, lang: str, ca: Path, transport: TransportChoice) -> Measured:
    params = {"text": text, "lang": lang}
    frames = 0
    async with open_stream(
        f"{url}/v1/speak", transport=transport, params=params, trust=Trust(cafile=ca)
    ) as stream:
        async for _ in stream:
            frames += 1
    timings = stream.timings
    return Measured(
        transport, timings.connected or 0.0, timings.first_frame or 0.0, frames, stream.gaps
    )


def _table(results: list[Measured]) -> Table:
    table = Table(title="one sentence, twice")
    for name in ("transport", "handshake", "first audio", "frames", "gaps"):
        table.add_column(name, justify="left" if name == "transport" else "right")
    for result in results:
        table.add_row(
            result.transport,
            f"{result.handshake * 1000:.1f} ms",
            f"{result.first_audio * 1000:.1f} ms",
            f"{result.frames} ({result.frames * FRAME_DURATION:.2f} s)",
            str(result.gaps),
        )
    return table


def _hints(port: int, ca: Path) -> str:
    where = shlex.quote(str(ca))
    url = f"https://localhost:{port}/v1/speak?text={quote('Good morning.')}"
    return f"""
Hear it:
  curl -sN --cacert {where} '{url}' | ffplay -nodisp -autoexit -
Have our own client say it, over QUIC, into a file:
  {shlex.quote(sys.executable)} -m tenuto.cli speak 'Good morning.' \\
    --server https://localhost:{port} --ca {where} --output morning.wav
Play a URL, over TCP, as raw samples:
  {shlex.quote(sys.executable)} -m tenuto.cli play '{url}' \\
    --ca {where} --transport tcp --output - | ffplay -nodisp -autoexit -f s16le -ar 22050 -
Ctrl-C stops the server.
"""


if __name__ == "__main__":
    # By the group, for its manner of reporting; `tenuto` itself has no such command.
    cli.add_command(demo)
    cli.main(["demo", *sys.argv[1:]])
