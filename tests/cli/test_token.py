"""`tenuto token`: only the token on standard output, a key that nobody else can read."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenuto.auth import KeyRing, verify
from tenuto.cli.main import cli
from tenuto.keyfiles import MAX_KEY_FILE_SIZE, load_key


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["token", *arguments], input=stdin)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "k.pem"
    assert run("--new-key", str(path)).exit_code == 0
    return path


def test_a_new_key_is_for_its_owners_eyes_and_never_overwritten(key: Path) -> None:
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    before = key.read_bytes()
    again = run("--new-key", str(key))
    assert again.exit_code == 2
    assert "not overwritten" in again.stderr
    assert key.read_bytes() == before
    nowhere = run("--new-key", str(key / "x"))
    assert nowhere.exit_code == 2


def test_only_the_token_is_printed(key: Path) -> None:
    made = run("--key", str(key), "--scope", "listen,control", "--session", "abc")
    assert made.exit_code == 0
    assert made.stderr == ""
    (line,) = made.stdout.splitlines()
    claims = verify(line, KeyRing([load_key(key)]), 0.0)
    assert json.loads(claims.to_json())["scope"] == "listen control"
    assert claims.session == "abc"


@pytest.mark.parametrize(
    ("life", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2d", 172800)]
)
def test_lives(key: Path, life: str, seconds: int) -> None:
    token = run("--key", str(key), "--expires", life).stdout.strip()
    left = verify(token, KeyRing([load_key(key)]), 0.0).expires - time.time()
    assert seconds - 5 < left < seconds + 2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "--key"),
        (("--expires", "soon"), "soon"),
        (("--expires", "0"), "'0'"),
        (("--expires", "-5"), "-5"),
        (("--expires", "9999d"), "9999d"),
        (("--scope", "lisen"), "lisen"),
        (("--scope", "create", "--session", "a"), "cannot create"),
        (("--show", "a", "--new-key", "b"), "two commands"),
        (("--show", "no.token.here"), "no JSON Web Token"),
    ],
)
def test_mistakes_are_named(key: Path, options: tuple[str, ...], word: str) -> None:
    given = () if not options or "--show" in options else ("--key", str(key))
    result = run(*given, *options)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_keys_that_are_none_are_named(tmp_path: Path, key: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(MAX_KEY_FILE_SIZE + 1))
    (tmp_path / "short").write_bytes(b"short")
    for name in ("gone", "large", "short", "."):
        result = run("--key", str(tmp_path / name))
        assert result.exit_code == 2
        assert str(tmp_path / name) in result.stderr


def test_show_explains_and_with_a_key_judges(key: Path, tmp_path: Path) -> None:
    token = run("--key", str(key), "--scope", "listen", "--session", "abc").stdout.strip()
    shown = run("--show", token)
    assert shown.exit_code == 0
    for words in ("EdDSA", "listen", '"abc"', "in 3", "not looked at"):
        assert words in shown.stdout
    assert "good" in run("--show", "-", "--key", str(key), stdin=f"{token}\n").stdout
    other = tmp_path / "o.pem"
    run("--new-key", str(other))
    assert "not signed by a key" in run("--show", token, "--key", str(other)).stdout
