import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from house.console import Console
from house.environment import Environment
from house.prepare import prepare
from house.stamp import wanted, write_stamp
from house.trouble import Trouble, pip_remedy
from tests.house.tree import make_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes environments of symlinks")

# Stands for pip: notes what it was asked for, fails when told to.
FAKE_PIP = """
import sys
from pathlib import Path
if sys.argv[1:] != ["--version"]:
    venv = Path(sys.prefix)
    with (venv / "asked").open("a", encoding="utf-8") as file:
        print(" ".join(sys.argv[1:]), file=file)
    if (venv / "fail").exists():
        print("Collecting one==1")
        print("ERROR: [Errno 28] No space left on device")
        sys.exit(1)
"""


def make_environment(root: Path) -> Environment:
    environment = Environment(make_tree(root))
    command = [sys.executable, "-m", "venv", "--without-pip", str(environment.folder)]
    subprocess.run(command, check=True, timeout=60)
    (site,) = environment.folder.glob("lib/python3*/site-packages")
    (site / "pip").mkdir()
    (site / "pip" / "__main__.py").write_text(FAKE_PIP, encoding="utf-8")
    return environment


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return make_environment(tmp_path / "sp ace-ü")


def asked(environment: Environment) -> list[str]:
    """The last word of every order that pip got since the last look."""
    file = environment.folder / "asked"
    if not file.exists():
        return []
    orders = file.read_text(encoding="utf-8").splitlines()
    file.unlink()
    return [Path(order.rpartition("/")[2]).name for order in orders]


def test_the_second_time_there_is_nothing_to_do(environment: Environment) -> None:
    said = StringIO()
    prepare(environment.root, "run", Console(said))
    assert asked(environment) == ["run.txt", "sp ace-ü"]
    assert said.getvalue().splitlines()[-1].startswith("[setup] ready in ")

    silence = StringIO()
    prepare(environment.root, "run", Console(silence))
    assert asked(environment) == []
    assert silence.getvalue() == ""


def test_the_dev_lock_is_added_and_the_project_left_alone(environment: Environment) -> None:
    prepare(environment.root, "run", Console(StringIO()))
    asked(environment)
    prepare(environment.root, "dev", Console(StringIO()))
    assert asked(environment) == ["dev.txt"]
    prepare(environment.root, "run", Console(StringIO()))
    assert asked(environment) == []


def test_a_failure_shows_what_pip_said_and_a_remedy(environment: Environment) -> None:
    (environment.folder / "fail").touch()
    with pytest.raises(Trouble, match="No space left on device") as caught:
        prepare(environment.root, "run", Console(StringIO()))
    assert "Collecting" not in caught.value.message
    assert caught.value.remedy.startswith("The disk is full")

    (environment.folder / "fail").unlink()
    asked(environment)
    prepare(environment.root, "run", Console(StringIO()))
    assert asked(environment) == ["run.txt", "sp ace-ü"]


def test_a_torn_package_is_forgotten_after_an_interruption(environment: Environment) -> None:
    prepare(environment.root, "run", Console(StringIO()))
    (site,) = environment.folder.glob("lib/python3*/site-packages")
    for name, record in (("whole", "whole.py,,\n"), ("torn", "gone.py,,\n"), ("cut", None)):
        info = site / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\n", encoding="utf-8")
        if record is not None:
            (info / "RECORD").write_text(record, encoding="utf-8")
    (site / "whole.py").touch()
    environment.installing.touch()

    said = StringIO()
    prepare(environment.root, "run", Console(said))
    assert sorted(file.name for file in site.glob("*.dist-info")) == ["whole-1.dist-info"]
    assert "torn-1 was half installed" in said.getvalue()
    assert "cut-1 was half installed" in said.getvalue()


def test_after_an_interruption_the_lock_is_installed_again(environment: Environment) -> None:
    prepare(environment.root, "run", Console(StringIO()))
    asked(environment)
    environment.installing.touch()
    prepare(environment.root, "run", Console(StringIO()))
    assert asked(environment)[:1] == ["run.txt"]


def test_a_python_without_ensurepip_names_the_package_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(Trouble, match="no ensurepip module") as caught:
        prepare(make_tree(tmp_path / "fresh"), "run", Console(StringIO()))
    assert f"apt install python3.{sys.version_info[1]}-venv" in caught.value.remedy
    assert not (tmp_path / "fresh" / ".venv").exists()


def test_a_file_in_the_way_is_replaced_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    environment = make_environment(elsewhere)
    root = make_tree(tmp_path / "here")
    (root / ".venv").symlink_to(environment.folder)
    # A link to a working environment is as good as one.
    write_stamp(environment.stamp, wanted(root, Environment(root).python))
    assert prepare(root, "run", Console(StringIO())).folder.is_symlink()


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("Retrying after connection broken by NewConnectionError(...)\nNo matching", "not reached"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one that the lock names"),
        ("ERROR: No matching distribution found for one==1", "lacks a package"),
        ("SSLError(SSLCertVerificationError(... CERTIFICATE_VERIFY_FAILED", "PIP_CERT"),
        ("PermissionError: [Errno 13] Permission denied", "cannot be written"),
        ("error: Failed building wheel for one", "compiled"),
    ],
)
def test_what_pip_says_finds_its_remedy(output: str, remedy: str) -> None:
    assert remedy in pip_remedy(output)


def test_what_nobody_foresaw_gets_no_made_up_remedy() -> None:
    assert pip_remedy("Segmentation fault") == ""
