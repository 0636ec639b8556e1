"""Finding profiles: built-in ones, a user's folder, a path; and what can be wrong with a file."""

import os
from pathlib import Path

import pytest

from netem.catalogue import ENVIRONMENT, LARGEST_PROFILE, LARGEST_TRACE, Catalogue
from netem.profile.conditions import RandomLoss, Rate, Schedule
from netem.profile.errors import ProfileError


def refused(catalogue: Catalogue, name: str) -> str:
    with pytest.raises(ProfileError) as caught:
        catalogue.load(name)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_built_in_profiles_have_names() -> None:
    catalogue = Catalogue()
    assert {"clear", "loss5", "4g-driving", "udp-blocked-reject"} <= set(catalogue.names())
    assert catalogue.names() == sorted(catalogue.names())
    assert catalogue.load("loss5").up.loss == RandomLoss(rate=0.05)


def test_an_unknown_name_gets_the_nearest() -> None:
    told = refused(Catalogue(), "los5-burst")
    assert told == (
        'los5-burst: there is no profile of this name (did you mean "loss5-burst"?); '
        "list them with python -m netem list, or give the path of a .toml file"
    )
    assert "mean" not in refused(Catalogue(), "qqqqqqqq")


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(f'extends = "{"x" * 300}"')
    assert "there is no profile of this name" in refused(Catalogue(tmp_path), "y" * 300)
    assert "extends: there is no profile" in refused(Catalogue(tmp_path), "long")


def test_a_user_s_folder_goes_before_the_built_in_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loss5.toml").write_text('[both]\nloss = "6%"')
    (tmp_path / "office.toml").write_text('extends = "4g"\n[both]\nloss = "1%"')
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    catalogue = Catalogue.from_environment()
    assert "office" in catalogue.names()
    assert catalogue.load("loss5").up.loss == RandomLoss(rate=0.06)
    office = catalogue.load("office")
    assert office.name == "office"
    assert office.up.loss == RandomLoss(rate=0.01)
    assert office.down.bottleneck == Rate(bits_per_second=9e6, queue=100)
    # What is given by hand goes before the environment.
    assert Catalogue.from_environment(tmp_path / "other").load("loss5").up.loss == RandomLoss(
        rate=0.05
    )


def test_a_built_in_profile_extends_built_in_ones_only(tmp_path: Path) -> None:
    (tmp_path / "interop.toml").write_text('[both]\nrate = "1kbit"')
    blackhole = Catalogue(tmp_path).load("interop-blackhole")
    assert blackhole.up.bottleneck == Rate(bits_per_second=10e6, queue=25)


def test_a_path_finds_its_neighbours_and_traces(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('[both]\ntrace = "drive.trace"')
    (tmp_path / "drive.trace").write_text("1\n2\n")
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"')
    loaded = Catalogue().load(str(mine))
    assert loaded.name == "mine"
    assert loaded.up.bottleneck == Schedule(opportunities=(1, 2), queue=100, name="drive.trace")
    mine.write_text('extends = "./base.toml"')
    assert Catalogue().load(str(mine)).up == loaded.up
    mine.write_text('extends = "bse"')
    assert 'mine.toml: extends: there is no profile "bse"' in refused(Catalogue(), str(mine))
    mine.write_text('extends = "gone.toml"')
    assert "gone.toml: cannot read it: there is no such file" in refused(Catalogue(), str(mine))


def test_no_file_can_surprise(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    assert "cannot read it: there is no such file" in refused(catalogue, "./gone.toml")
    assert "Is a directory" in refused(catalogue, f"{tmp_path}/")
    assert "null" in refused(catalogue, "a\0b.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# caf\xe9\n")
    assert "it is not UTF-8 text (byte 5); save it as UTF-8" in refused(catalogue, "latin")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.toml")
        assert "it is not a plain file" in refused(catalogue, "pipe")
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(2_000_000_000)
    assert "it is larger than 1 MB" in refused(catalogue, "large")
    (tmp_path / "brim.toml").write_bytes(b"#" * LARGEST_PROFILE)
    catalogue.load("brim")
    (tmp_path / "wrong.toml").write_text("[both\n")
    assert "wrong.toml: not TOML: " in refused(catalogue, "wrong")
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    assert "cannot read it" in refused(catalogue, str(loop))


def test_no_trace_can_surprise(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[up]\ntrace = "drive.trace"')
    catalogue = Catalogue()
    assert "mine.toml: up.trace: " in refused(catalogue, str(mine))
    assert "cannot read it: there is no such file; give the path of a trace" in refused(
        catalogue, str(mine)
    )
    with (tmp_path / "drive.trace").open("wb") as file:
        file.truncate(LARGEST_TRACE + 1)
    assert "it is larger than 20 MB" in refused(catalogue, str(mine))


def test_a_bad_folder_is_named(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "gone")
    with pytest.raises(ProfileError, match="cannot list this folder of profiles: No such file"):
        catalogue.names()
    assert catalogue.load("loss5").name == "loss5"


def test_files_of_windows_editors_are_read(tmp_path: Path) -> None:
    path = tmp_path / "notepad.toml"
    path.write_bytes(b'\xef\xbb\xbf[up]\r\ntrace = "drive.trace"\r\n')
    (tmp_path / "drive.trace").write_bytes(b"\xef\xbb\xbf1\r\n5\r\n")
    bottleneck = Catalogue().load(str(path)).up.bottleneck
    assert isinstance(bottleneck, Schedule)
    assert bottleneck.opportunities == (1, 5)
