"""`tenuto serve`, which is also `python -m quicserver`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import click

from quicserver.app import Server
from quicserver.app import check as check_settings
from quicserver.handover import Estate, become_successor, take_over
from quicserver.lastresort import where_it_hangs
from quicserver.platform import (
    loop_factory,
    raise_descriptor_limit,
    return_freed_memory,
    spare_collector,
    trim_heap,
)
from quicserver.running import run
from tenuto.cli.paths import NamedPath
from tenuto.daemons import DaemonExecutor
from tenuto.errors import OperatorError
from tenuto.policy import QuicShare
from tenuto.settings import LOOPBACK, ServerSettings
from tenuto.sources import STDIN_MODES, parse_stdin_format, shared_engine
from tenuto.telemetry.events import EndForced
from tenuto.telemetry.log import LogSink

__all__ = ["serve"]

_LAST_LINES = 0.05
"""Seconds for the log of a process that is ended."""


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
@click.option(
    "--token-key",
    "token_keys",
    type=NamedPath(),
    multiple=True,
    help="Ask for tokens signed with this key; several for a change of keys, the first signs.",
)
@click.option(
    "--attach-rate",
    default=150.0,
    show_default=True,
    help="Listeners a second that may attach; the others are told when to come back.",
)
@click.option(
    "--node", default="", metavar="TAG", help="Begin the ids of our sessions with this tag."
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="TAG=URL",
    help="Another node: who asks us for a session of its is told the URL.",
)
@click.option(
    "--wait-for-port",
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long for a port that an ending server still has.",
)
@click.option("--check", is_flag=True, help="Say whether it would start, and end.")
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
    token_keys: tuple[Path, ...],
    attach_rate: float,
    node: str,
    peers: tuple[str, ...],
    wait_for_port: float,
    check: bool,
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

    Development certificates are made on the first start. Without --token-key nobody is asked
    for a token and only loopback addresses are served. Every option can be set in the
    environment, such as TENUTO_SERVE_PORT. SIGTERM or Ctrl-C tells every listener where to
    resume and drains; SIGHUP does so and starts this command anew, without closing its port.
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
        token_keys=token_keys,
        attach_rate=attach_rate,
        attach_burst=max(1.0, attach_rate),
        node=node,
        peers=ServerSettings.parse_peers(peers),
        wait_for_port=wait_for_port,
        test_sources=test_sources,
        first_sequence=first_sequence,
    )
    if check:
        check_settings(settings)
        click.echo("it would start", err=True)
        return
    raise_descriptor_limit()
    return_freed_memory()
    inherited = take_over()
    sink = LogSink("server", as_json=log == "json")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            estate = runner.run(_serve(settings, sink, inherited))
    finally:
        sink.close()
    if estate is not None:
        become_successor(estate)


async def _serve(settings: ServerSettings, sink: LogSink, inherited: Estate) -> Estate | None:
    """What to go on with, or None where that was all."""
    # The runner joins the default executor, and what a library calls there may hang.
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    server = Server(settings, on_event=sink, inherited=inherited)
    spare_collector()
    trimming = asyncio.create_task(trim_heap())
    try:
        return await run(
            server,
            on_event=sink,
            end=lambda estate: _end(sink, estate),
            successor=bool(inherited.sockets),
        )
    finally:
        trimming.cancel()
        shared_engine().close()


def _end(sink: LogSink, estate: Estate | None) -> None:
    """What was promised of the end, whatever the main thread is at."""
    sink(EndForced(where_it_hangs()))
    sink.close(_LAST_LINES)
    if estate is not None:
        with contextlib.suppress(OperatorError):
            become_successor(estate)
    os._exit(0)
