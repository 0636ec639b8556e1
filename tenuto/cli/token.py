"""`tenuto token`: make keys and tokens, and say what a token says."""

from __future__ import annotations

import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from tenuto.auth import Claims, KeyRing, Scope, TokenError, issue, look_into, verify
from tenuto.cli.paths import NamedPath
from tenuto.errors import OperatorError
from tenuto.keyfiles import load_key, make_key

__all__ = ["token"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_LIFE = 366 * 86400
_ALL = " ".join(scope.value for scope in Scope)


@click.command()
@click.option("--key", type=NamedPath(), help="Key that signs: Ed25519 PEM, or 32 secret bytes.")
@click.option("--new-key", type=NamedPath(), help="Make a key here, for your eyes only, and end.")
@click.option(
    "--scope", default=_ALL, show_default=True, help="What it allows, words or a list by commas."
)
@click.option("--session", metavar="ID", help="The one session it is for; else any.")
@click.option(
    "--expires", default="1h", show_default=True, metavar="TIME", help="Its life: 90s, 15m, 1h, 7d."
)
@click.option("--show", metavar="TOKEN", help="Say what a token says; - reads it from a pipe.")
def token(
    key: Path | None,
    new_key: Path | None,
    scope: str,
    session: str | None,
    expires: str,
    show: str | None,
) -> None:
    """Make a token, and print it and nothing else.

    \b
    Try it:
      tenuto token --new-key token.pem
      tenuto serve --token-key token.pem &
      TENUTO_TOKEN=$(tenuto token --key token.pem --scope create) tenuto speak "Good morning."
      tenuto token --key token.pem --scope listen --session ID --expires 15m

    Scopes: listen, control (pause, close, flush), create (start sessions). A token for one
    session cannot create. --show needs no key; with one it also says whether a server with
    that key would take the token.
    """  # noqa: D301  # click reads \b
    if sum(each is not None for each in (new_key, show)) > 1:
        raise click.UsageError("--new-key and --show are two commands")
    if new_key is not None:
        make_key(new_key)
        click.echo(f"made {new_key}; serve with --token-key {new_key}", err=True)
    elif show is not None:
        _show(_given(show), key)
    else:
        click.echo(_make(key, scope, session, expires))


def _make(key: Path | None, scope: str, session: str | None, expires: str) -> str:
    if key is None:
        raise OperatorError(
            "no key to sign with",
            remedy="add --key FILE; `tenuto token --new-key FILE` makes one",
        )
    signer = load_key(key)
    if signer.signs_with is None:
        raise OperatorError(f"{key} is a public key, which signs nothing", remedy="name the other")
    scopes = _scopes(scope)
    if session is not None and Scope.CREATE in scopes and scope != _ALL:
        raise OperatorError("a token for one session cannot create", remedy="leave out create")
    if session is not None:
        scopes -= {Scope.CREATE}
    return issue(signer, Claims(scopes, time.time() + _life(expires), session))


def _scopes(text: str) -> frozenset[Scope]:
    words = re.split(r"[\s,]+", text.strip())
    known = {scope.value: scope for scope in Scope}
    for word in words:
        if word not in known:
            raise OperatorError(f"scope {word!r}", remedy=f"say some of: {', '.join(known)}")
    return frozenset(known[word] for word in words)


def _life(text: str) -> float:
    match = re.fullmatch(r"(\d{1,9})([smhd])?", text.strip(), re.ASCII)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if not 0 < seconds <= _MAX_LIFE:
        raise OperatorError(f"expires = {text!r}", remedy="give a time such as 90s, 15m, 1h or 7d")
    return float(seconds)


def _given(show: str) -> str:
    return sys.stdin.readline().strip() if show == "-" else show


def _show(text: str, key: Path | None) -> None:
    """What it says of itself; a wrong one is still shown, then explained by exit status 2."""
    algorithm, id, payload = look_into(text)
    claims = Claims.from_json(payload)
    lines = [
        ("algorithm", algorithm),
        ("key", json.dumps(id) if id is not None else "not named"),
        ("scope", " ".join(scope.value for scope in Scope if scope in claims.scopes) or "none"),
        ("session", json.dumps(claims.session) if claims.session is not None else "any"),
        ("expires", _when(claims.expires)),
    ]
    if claims.not_before is not None:
        lines.append(("from", _when(claims.not_before)))
    lines.append(("signature", _judged(text, key)))
    for name, value in lines:
        click.echo(f"{name:<10} {value}")


def _judged(text: str, key: Path | None) -> str:
    if key is None:
        return "not looked at: add --key FILE"
    try:
        verify(text, KeyRing([load_key(key)]), time.time())
    except TokenError as error:
        return error.message
    return "good, and a server with that key takes it now"


def _when(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s after 1970"
    left = seconds - time.time()
    return f"{moment} ({f'in {left:.0f} s' if left > 0 else f'{-left:.0f} s ago'})"
