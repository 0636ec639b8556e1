from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenuto.cli.certs import certs
from tenuto.errors import OperatorError
from tenuto.tls import DevCertificates, load_certificate
from tests.tls.pairs import DAY, make_pair, rsa_key

REAL_NOW = datetime.now(UTC)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(certs, [str(argument) for argument in arguments])


def operator_error(result: Result) -> str:
    assert isinstance(result.exception, OperatorError), result.output
    assert str(result.exception).isprintable()
    return str(result.exception)


def test_first_run_tells_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "my certs"
    result = run("--dir", folder)
    assert result.exit_code == 0, result.output
    made = DevCertificates(folder).ensure(REAL_NOW)
    for expected in (
        f"{folder}/cert.pem",
        f"{folder}/key.pem",
        "localhost, 127.0.0.1, ::1",
        "13.0 days left",
        base64.b64encode(made.current.sha256).decode(),
        base64.b64encode(made.next_pair.sha256).decode(),
        made.current.sha256.hex(),
        f"curl --cacert '{folder}/ca.pem'",
        "serverCertificateHashes",
    ):
        assert expected in result.output
    assert max(map(len, result.output.splitlines())) < 250
    assert "still good" in run("--dir", folder).output


def test_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run().exit_code == 0
    assert (tmp_path / "certs" / "dev" / "cert.pem").exists()


def test_json(tmp_path: Path) -> None:
    first = json.loads(run("--dir", tmp_path / "dev", "--json", "--name", "voice.test").stdout)
    loaded = load_certificate(Path(first["certificate"]), Path(first["key"]), REAL_NOW)
    assert base64.b64decode(first["sha256"]) == loaded.sha256
    assert bytes.fromhex(first["sha256_hex"]) == loaded.sha256
    assert datetime.fromisoformat(first["not_after"]) == loaded.not_after
    assert first["names"] == ["localhost", "voice.test", "127.0.0.1", "::1"]
    assert first["next_sha256"] != first["sha256"]
    assert (first["renewed"], first["new_ca"]) == (True, True)
    again = json.loads(run("--dir", tmp_path / "dev", "--json").stdout)
    assert again["sha256"] == first["sha256"]
    assert (again["renewed"], again["new_ca"]) == (False, False)


def test_own_certificate_is_not_overwritten(tmp_path: Path) -> None:
    own = make_pair(tmp_path)
    theirs = tmp_path / "dev" / "cert.pem"
    theirs.parent.mkdir()
    theirs.write_bytes(own.chain.read_bytes())
    assert str(theirs) in operator_error(run("--dir", theirs.parent))
    assert theirs.read_bytes() == own.chain.read_bytes()


@pytest.mark.parametrize("name", ["https://x", "a b", ""])
def test_bad_name(tmp_path: Path, name: str) -> None:
    assert "cannot be put into" in operator_error(run("--dir", tmp_path, "--name", name))


def test_check_of_a_good_pair(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, start=REAL_NOW - DAY, end=REAL_NOW + 9 * DAY)
    result = run("--check", *pair.paths)
    assert result.exit_code == 0
    assert "Can be served" in result.output
    assert "Browsers accept it" in result.output
    report = json.loads(run("--check", *pair.paths, "--json").stdout)
    assert (report["problem"], report["hash_refusals"]) == (None, [])


def test_check_of_a_pair_for_servers_only(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, key=rsa_key(), start=REAL_NOW - DAY, end=REAL_NOW + 89 * DAY)
    result = run("--check", *pair.paths)
    assert result.exit_code == 0
    assert "Can be served" in result.output
    assert "RSA is not allowed" in result.output
    assert "90 days" in result.output


def test_check_of_an_expired_pair(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, start=REAL_NOW - 9 * DAY, end=REAL_NOW - DAY)
    result = run("--check", *pair.paths)
    assert "expired at" in operator_error(result)
    assert pair.chain.name in result.output
    assert "Can be served" not in result.output
    report = json.loads(run("--check", *pair.paths, "--json").stdout)
    assert report["problem"] == "expired"
    assert report["days_left"] < 0


def test_check_of_a_mismatch(tmp_path: Path) -> None:
    one, two = make_pair(tmp_path, "one"), make_pair(tmp_path, "two")
    assert "does not belong" in operator_error(run("--check", one.chain, two.key))
    result = run("--check", one.chain, two.key, "--json")
    assert json.loads(result.stdout)["problem"] == "mismatched"
    assert "does not belong" in operator_error(result)


def test_check_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no file" in operator_error(run("--check", "a.crt", "a.key"))
    assert run("--check", "a.crt", "a.key", "--name", "x").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_help_is_worth_reading() -> None:
    text = run("--help").output
    for word in ("serverCertificateHashes", "--check CERT KEY", "Examples", "never", "Exit status"):
        assert word in text
