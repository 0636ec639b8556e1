"""`tenuto speak`: have a text spoken."""

from __future__ import annotations

import sys

import click

from tenuto.cli.listen import Value, listen
from tenuto.cli.options import ListenOptions, listening, server_option, server_origin
from tenuto.errors import ErrorCode, OperatorError, RequestError

__all__ = ["MAX_TEXT_SIZE", "speak"]

MAX_TEXT_SIZE = 4 * 1024 * 1024
"""Bytes read from standard input; a server's own limit is far below."""

_HELP = """Have TEXT spoken and listen to it; - reads the text from standard input.

\b
Examples:
  tenuto speak 'Hello from Tenuto.'
  tenuto speak '你好' --lang cmn --output hello.wav
  tenuto speak 'Slowly, please.' --voice en-us+f3 --speed 120
  fortune | tenuto speak -
  tenuto speak 'Listen.' -o - | ffplay -nodisp -autoexit -f s16le -ar 22050 -
  tenuto speak 'How fast?' -o fast.wav --json | tail -n 1

tenuto sources --voices lists voices and languages, tenuto sources what speed and pitch may be.

Where the connection is lost, it goes on over another one, nothing missing and nothing twice, and
a server that was started anew speaks the clause again.

Exit status: 0; 1 if the network or the server failed, the stream was cut and did not go on
within --patience, or lacks frames, or standard output cannot be written; 2 if something must
be asked or set differently; 130 after Ctrl-C."""


@click.command(help=_HELP, short_help="Have a text spoken and listen to it.")
@click.argument("text", metavar="TEXT|-")
@click.option("--lang", metavar="CODE", help="The language, such as en or cmn.")
@click.option("--voice", metavar="NAME", help="The voice, such as en-us or en-us+f3.")
@click.option("--speed", type=int, metavar="WPM", help="How fast, in words a minute.")
@click.option("--pitch", type=int, metavar="PITCH", help="How high.")
@click.option(
    "--rate", type=int, metavar="HZ", help="Samples per second, in place of the voice's own."
)
@click.option("--channels", type=int, metavar="N", help="Channels, in place of one.")
@server_option
@listening
def speak(text: str, server: str, options: ListenOptions, **manner: Value | None) -> None:
    origin = server_origin(server)
    params: dict[str, Value] = {"text": _standard_input() if text == "-" else text}
    params |= {name: value for name, value in manner.items() if value is not None}
    # POST: a text belongs into no log of URLs, and may be longer than one.
    listen(f"{origin}/v1/speak", options, params=params, method="POST")


def _standard_input() -> str:
    try:
        data = sys.stdin.buffer.read(MAX_TEXT_SIZE + 1)
    except OSError as error:
        raise OperatorError(
            f"cannot read standard input: {error.strerror or error}",
            remedy="pipe the text into it, or give it in place of -",
        ) from None
    if len(data) > MAX_TEXT_SIZE:
        raise RequestError(
            ErrorCode.TOO_LARGE,
            f"more than {MAX_TEXT_SIZE} bytes of text on standard input",
            remedy="speak it in parts",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            ErrorCode.BAD_TEXT,
            f"standard input is not UTF-8 at byte {error.start}",
            remedy="convert it, such as with iconv -t UTF-8",
        ) from None
