import os
import subprocess
import sys
from pathlib import Path

import pytest

from house.child import environment_for
from house.environment import Environment, find_flaw
from house.stamp import wanted, write_stamp
from tests.house.tree import make_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes environments of symlinks")


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A `.venv` without packages, in a folder whose name has all that a path may have."""
    root = make_tree(tmp_path / "sp ace-ü")
    environment = Environment(root)
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment.folder],
        check=True,
        timeout=60,
    )
    return environment


def give_pip(environment: Environment, source: str) -> None:
    (site,) = environment.folder.glob("lib/python3*/site-packages")
    (site / "pip").mkdir()
    (site / "pip" / "__main__.py").write_text(source, encoding="utf-8")


def stamped(environment: Environment) -> None:
    write_stamp(environment.stamp, wanted(environment.root, environment.python))


def test_a_stamped_environment_is_ready(environment: Environment) -> None:
    assert not environment.is_ready("run")
    stamped(environment)
    assert environment.is_ready("run")
    assert environment.is_ready("dev")


@pytest.mark.parametrize("marker", ["being_made", "installing"])
def test_an_interrupted_one_is_not(environment: Environment, marker: str) -> None:
    stamped(environment)
    getattr(environment, marker).touch()
    assert not environment.is_ready("run")


def test_one_without_its_python_is_not(environment: Environment) -> None:
    stamped(environment)
    environment.python.unlink()
    environment.python.symlink_to("/nowhere/python3")
    assert not environment.is_ready("run")
    flaw = find_flaw(environment)
    assert flaw is not None
    assert flaw.reason == "has lost its Python"


def test_whoever_made_it_a_working_one_has_no_flaw(environment: Environment) -> None:
    give_pip(environment, "print('pip 99')")
    assert find_flaw(environment) is None


def test_missing_or_torn_pip_is_told_apart_from_the_rest(environment: Environment) -> None:
    flaw = find_flaw(environment)
    assert flaw is not None
    assert flaw.lacks_only_pip
    give_pip(environment, "import pip._internal.gone")
    assert find_flaw(environment) == flaw


def test_a_half_made_one_is_made_anew(environment: Environment) -> None:
    give_pip(environment, "print('pip 99')")
    environment.being_made.touch()
    flaw = find_flaw(environment)
    assert flaw is not None
    assert flaw.reason == "was left half made"


def test_a_python_that_is_too_old_or_none_at_all(environment: Environment) -> None:
    for script, reason in (
        ("echo python 3 9", "has Python 3.9, which is too old"),
        ("exit 1", "has a Python that does not start"),
    ):
        environment.python.unlink()
        environment.python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        environment.python.chmod(0o755)
        flaw = find_flaw(environment)
        assert flaw is not None
        assert flaw.reason == reason


def test_it_tells_its_version(environment: Environment, tmp_path: Path) -> None:
    assert environment.version() == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert Environment(tmp_path).version() == ""


def test_variables_that_would_lead_elsewhere_are_dropped() -> None:
    venv = Path("/a b/.venv")
    base = {"PATH": "/usr/bin", "PYTHONPATH": "/x", "PIP_TARGET": "/y", "HTTPS_PROXY": "http://p"}
    env = environment_for(venv, base)
    assert env["PATH"] == f"/a b/.venv/bin{os.pathsep}/usr/bin"
    assert env["HTTPS_PROXY"] == "http://p"
    assert not {"PYTHONPATH", "PIP_TARGET"} & set(env)
