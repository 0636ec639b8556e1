"""`tenuto serve`, which is also `python -m quicserver`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from quicserver.app import Server
from quicserver.platform import loop_factory, raise_descriptor_limit, spare_collector
from tenuto.cli.paths import NamedPath
from tenuto.daemons import DaemonExecutor
from tenuto.policy import QuicShare
from tenuto.settings import LOOPBACK, ServerSettings
from tenuto.sources import STDIN_MODES, parse_stdin_format, shared_engine
from tenuto.telemetry.log import LogSink

__all__ = ["serve"]


@click.command()
@click.option(
    "--host",
    "hosts",
    multiple=True,
    default=LOOPBACK,
    show_default=True,
    help="Address to bind; may be given several times.",
)
@click.option("--port", default=4433, show_default=True, help="UDP and TCP port; 0 for any.")
@click.option("--cert", type=NamedPath(), help="Certificate chain, PEM.")
@click.option("--key", type=NamedPath(), help="Its private key, PEM.")
@click.option(
    "--certs-dir",
    type=NamedPath(),
    default=Path("certs/dev"),
    show_default=True,
    help="Where development certificates are kept when --cert is not given.",
)
@click.option(
    "--media",
    type=NamedPath(),
    help="Folder of sound files to serve as /v1/speak?file=NAME.",
)
@click.option(
    "--stdin",
    type=click.Choice(STDIN_MODES),
    help="Serve standard input as source=stdin; live: never let its writer wait.",
)
@click.option(
    "--stdin-format",
    default="auto",
    show_default=True,
    metavar="auto|RATE[:CHANNELS]",
    help="auto: WAV files, one after the other; else raw 16-bit little-endian samples.",
)
@click.option(
    "--quic",
    default="on",
    show_default=True,
    metavar="off|on|PERCENT",
    help="Share of clients that are offered QUIC.",
)
@click.option("--grace", default=2.0, show_default=True, help="Seconds to drain on SIGTERM.")
@click.option("--test-sources", is_flag=True, help="Serve counting, model and clock, for tests.")
@click.option("--first-sequence", default=0, hidden=True, help="Where sequences start.")
@click.option("--log", type=click.Choice(["text", "json"]), default="text", show_default=True)
def serve(
    hosts: tuple[str, ...],
    port: int,
    cert: Path | None,
    key: Path | None,
    certs_dir: Path,
    media: Path | None,
    stdin: str | None,
    stdin_format: str,
    quic: str,
    grace: float,
    test_sources: bool,
    first_sequence: int,
    log: str,
) -> None:
    """Serve speech over HTTP/3 and, on the same port, over TCP.

    \b
    Try it:
      tenuto serve &
      tenuto speak "Good morning."
      curl -N --cacert certs/dev/ca.pem \\
        "https://localhost:4433/v1/speak?text=Hello" | ffplay -nodisp -autoexit -
      ffmpeg -re -i radio.mp3 -f wav - | tenuto serve --stdin live &
      tenuto play "https://localhost:4433/v1/speak?source=stdin"

    Development certificates are made on the first start. Without a configured key only
    loopback addresses are served. Every option can be set in the environment, such as
    TENUTO_SERVE_PORT. SIGTERM or Ctrl-C tells every listener where to resume and drains.
    """  # noqa: D301  # click reads \b
    settings = ServerSettings(
        hosts=hosts,
        port=port,
        certificate=cert,
        key=key,
        certificates_folder=certs_dir,
        media=media,
        stdin=stdin,
        stdin_format=parse_stdin_format(stdin_format),
        quic=QuicShare.parse(quic),
        grace=grace,
        test_sources=test_sources,
        first_sequence=first_sequence,
    )
    raise_descriptor_limit()
    sink = LogSink("server", as_json=log == "json")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(settings, sink))
    finally:
        sink.close()


async def _serve(settings: ServerSettings, sink: LogSink) -> None:
    # The runner joins the default executor, and what a library calls there may hang.
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    server = Server(settings, on_event=sink)
    spare_collector()
    try:
        await server.run()
    finally:
        shared_engine().close()
