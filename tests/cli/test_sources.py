"""`tenuto sources` and GET /v1/sources: the table that requests are checked with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tenuto.errors import RequestError
from tenuto.sources import MediaFolder, open_source
from tenuto.sources.kinds import KINDS
from tenuto.sources.parameters import Real, Text, Whole
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon
from tests.support.wavs import wav


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tenuto.cli", "sources", *options],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_every_source_and_parameter_is_in_the_table() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    for kind in KINDS:
        assert kind.name in done.stdout
        for parameter in kind.parameters:
            assert f"{parameter.name}=" in done.stdout
            assert parameter.help in done.stdout
    assert "80 to 450 words/min" in done.stdout
    assert "1 to half the rate" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_json_says_the_same_for_machines() -> None:
    listing = json.loads(run("--json").stdout)
    sources = {source["source"]: source for source in listing["sources"]}
    assert list(sources) == [kind.name for kind in KINDS]
    assert "voices" not in listing
    assert sources["speech"]["available"] is True
    assert (sources["file"]["live"], sources["file"]["pausable"]) == (False, True)
    assert (sources["stdin"]["live"], sources["stdin"]["needs"]) == (None, "--stdin live|pausable")
    (speed,) = [each for each in sources["speech"]["parameters"] if each["name"] == "speed"]
    assert (speed["type"], speed["low"], speed["high"]) == ("whole number", 80, 450)
    assert (speed["default"], speed["unit"]) == (175, "words/min")


def test_voices_are_listed_for_a_language_or_all() -> None:
    english = json.loads(run("--voices", "en", "--json").stdout)
    names = [voice["voice"] for voice in english["voices"]]
    assert {"en", "en-US", "en-US-nyc"} <= set(names)
    assert "de" not in names
    assert "f3" in english["variants"]
    everything = json.loads(run("--json", "--voices").stdout)
    assert len(everything["voices"]) > 100
    shown = run("--voices", "cmn").stdout
    assert "Chinese (Mandarin" in shown
    assert "whisper" in shown


def test_an_unknown_language_is_one_line() -> None:
    done = run("--voices", "klingon")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no voice speaks 'klingon'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_the_extra_the_remedy_is_named(tmp_path: Path) -> None:
    (tmp_path / "espeakng_loader.py").write_text("raise ImportError('not installed')")
    done = run(PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    assert "No speech here: speech needs espeak-ng" in done.stdout
    assert "pip install 'tenuto[espeak]'\n" in done.stdout
    (speech, *_) = json.loads(run("--json", PYTHONPATH=str(tmp_path)).stdout)["sources"]
    assert speech["available"] is False
    voices = run("--voices", PYTHONPATH=str(tmp_path))
    assert voices.returncode == 1
    assert "tenuto[espeak]" in voices.stderr
    assert len(voices.stderr.splitlines()) == 1


def test_what_files_can_be_played_is_told_with_and_without_the_extra(tmp_path: Path) -> None:
    assert "Files: WAV, FLAC, MP3, Ogg Vorbis, Ogg Opus, AIFF, AU, CAF, W64\n" in run().stdout
    (tmp_path / "soundfile.py").write_text("raise ImportError('not installed')")
    done = run(PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    assert "Files: WAV; for FLAC, " in done.stdout
    assert "pip install 'tenuto[audio]'\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120
    files = json.loads(run("--json", PYTHONPATH=str(tmp_path)).stdout)["files"]
    assert files["formats"] == ["WAV"]


def test_a_narrow_charset_is_no_error() -> None:
    done = run(PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("door", DOORS)
async def test_a_server_tells_what_it_has(
    door: str, start_server: StartServer, ca_file: Path, tmp_path: Path
) -> None:
    async def ask(port: int, query: str = "") -> dict[str, Any]:
        answer = await fetch_soon(door, port, f"/v1/sources{query}", ca=ca_file)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.headers["cache-control"] == "max-age=60"
        return answer.json

    bare = await start_server(test_sources=False)
    sources = {each["source"]: each for each in (await ask(bare.port))["sources"]}
    assert set(sources) == {"speech", "file", "tone", "stdin"}
    assert [name for name, each in sources.items() if each["available"]] == ["speech", "tone"]
    assert sources["stdin"]["remedy"] == "start the server with --stdin live|pausable"
    full = await start_server(media=tmp_path)
    listing = await ask(full.port, "?voices=en")
    names = [each["source"] for each in listing["sources"] if each["available"]]
    assert names == ["speech", "file", "tone", "counting", "model", "clock"]
    assert "en-US" in [voice["voice"] for voice in listing["voices"]]
    bad = await fetch_soon(door, full.port, "/v1/sources?voices=klingon", ca=ca_file)
    assert (bad.status, bad.json["code"]) == (400, "unknown-voice")
    typo = await fetch_soon(door, full.port, "/v1/sources?voice=en", ca=ca_file)
    assert (typo.status, "did you mean 'voices'" in typo.json["remedy"]) == (400, True)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.parameters], ids=lambda k: k.name)
async def test_what_the_table_says_is_what_is_taken(kind: Any, tmp_path: Path) -> None:
    """One below and one above each range are refused with the range of the table."""
    needed = {p.name: "x" for p in kind.parameters if isinstance(p, Text) and p.required}
    base = {**needed, "source": kind.name}
    (tmp_path / "x").write_bytes(wav())
    taken = partial(open_source, media=MediaFolder(tmp_path), allow_test_sources=True)
    for parameter in kind.parameters:
        if not isinstance(parameter, Real):
            continue
        over = f"{parameter.high + 1:.0f}"
        for value in (over, "-1", "", "x"):
            with pytest.raises(RequestError, match=f"^{parameter.name}=") as refusal:
                await taken({**base, parameter.name: value})
            assert f"{parameter.low:.10g} to " in refusal.value.remedy
        if isinstance(parameter, Whole):
            half = f"{parameter.low:.0f}.5"
            with pytest.raises(RequestError, match="no whole number"):
                await taken({**base, parameter.name: half})
