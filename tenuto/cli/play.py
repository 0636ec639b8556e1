"""`tenuto play`: listen to a URL or to a session."""

from __future__ import annotations

import re

import click

from tenuto.cli.listen import Value, listen
from tenuto.cli.options import ListenOptions, listening, server_option, server_origin
from tenuto.client import session_url
from tenuto.errors import ErrorCode, RequestError
from tenuto.redaction import redact

__all__ = ["play"]

_HELP = """Play the audio at URL, or that of a session by its id.

Plays on the loudspeaker, which may change meanwhile, or writes to --output. Races QUIC and TCP,
changes to the other where one goes silent, and ends well only if the server has proved that the
stream is whole.

\b
Examples:
  tenuto play 'https://localhost:4433/v1/speak?text=Hello'
  tenuto play 'https://localhost:4433/v1/speak?tone=440' --transport tcp -o tone.wav
  tenuto play SESSION_ID --from 250 --epoch 0
  tenuto play SESSION_ID --mode live --record-arrivals arrivals.jsonl
  tenuto play SESSION_ID -o - | ffplay -nodisp -autoexit -f s16le -ar 22050 -

Where the connection is lost, it goes on over another one, nothing missing and nothing twice, and
a server that was started anew speaks the clause again.

Exit status: 0; 1 if the network or the server failed, the stream was cut and did not go on
within --patience, or lacks frames, or standard output cannot be written; 2 if something must
be asked or set differently; 130 after Ctrl-C."""

# What an id may look like; it goes into a path, so it must not be more than one segment.
_SESSION_ID = re.compile(r"[A-Za-z0-9._~-]+")


@click.command(help=_HELP, short_help="Play a URL or a session.")
@click.argument("source", metavar="URL|SESSION_ID")
@server_option
@click.option(
    "--from",
    "start",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Begin with this frame of the session: a resume.",
)
@click.option(
    "--epoch", type=click.IntRange(min=0), metavar="N", help="The epoch that --from counts in."
)
@click.option(
    "--listener",
    metavar="ID",
    help="Take over from the leg that listens under this id.  [default: a new one]",
)
@listening
def play(
    source: str,
    server: str,
    start: int | None,
    epoch: int | None,
    listener: str | None,
    options: ListenOptions,
) -> None:
    given = {"from": start, "epoch": epoch, "listener": listener}
    params: dict[str, Value] = {name: value for name, value in given.items() if value is not None}
    listen(_url(source, server), options, params=params)


def _url(source: str, server: str) -> str:
    if "://" in source:
        return source
    if _SESSION_ID.fullmatch(source) and source not in (".", ".."):
        return session_url(server_origin(server), source)
    raise RequestError(
        ErrorCode.BAD_REQUEST,
        f"{redact(source)[:80]!r} is neither a URL nor a session's id",
        remedy="a URL begins with https://, such as https://localhost:4433/v1/speak?text=Hello",
    )
