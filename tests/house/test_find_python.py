import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
COMMANDS = ("check", "demo", "fix", "lock", "test")

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with nothing on it but what the scripts need of a system."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "cat"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def add_python(programs: Path, name: str, version: tuple[int, int]) -> Path:
    """An interpreter that believes to be of that version."""
    real = programs / f"real-{name}"
    script = programs / name
    script.write_text(
        f"""#!/bin/sh
exec '{sys.executable}' -c 'import sys
sys.version_info = {version}
sys.executable = "{real}"
exec(sys.argv[2])' "$@"
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    real.write_text(f'#!/bin/sh\necho {name} "$@"\n', encoding="utf-8")
    real.chmod(0o755)
    return real


def run(programs: Path, script: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [script, *arguments],
        env={"PATH": str(programs), **variables},
        cwd=os.sep,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """The scripts, in a folder with a name that needs quoting."""
    folder = tmp_path / "it's a $HOME-ü" / "scripts"
    folder.mkdir(parents=True)
    for name in (*COMMANDS, "find-python.sh"):
        shutil.copy(SCRIPTS / name, folder / name)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_arrive_as_they_were(programs: Path, scripts: Path, command: str) -> None:
    add_python(programs, "python3", (3, 12))
    said = run(programs, scripts / command, "-k", "a b")
    assert said == f"python3 -X utf8 {scripts}/house {command} -k a b\n"


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": (3, 12), "python3.11": (3, 11)}, "python3"),
        ({"python3": (3, 10), "python3.11": (3, 11)}, "python3.11"),
        ({"python3": (2, 7), "python": (3, 13)}, "python"),
        # Tested before untested, untested before none.
        ({"python3": (3, 15), "python3.13": (3, 13)}, "python3.13"),
        ({"python3": (3, 15)}, "python3"),
    ],
)
def test_the_first_that_fits_is_chosen(
    programs: Path, scripts: Path, there: dict[str, tuple[int, int]], chosen: str
) -> None:
    for name, version in there.items():
        add_python(programs, name, version)
    assert run(programs, scripts / "test").split()[0] == chosen


def test_a_stand_in_that_does_not_start_is_passed_over(programs: Path, scripts: Path) -> None:
    (programs / "python3").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (programs / "python3").chmod(0o755)
    add_python(programs, "python3.12", (3, 12))
    assert run(programs, scripts / "test").startswith("python3.12 ")


def test_without_python_every_system_hears_how_to_get_it(programs: Path, scripts: Path) -> None:
    said = run(programs, scripts / "demo")
    for system in ("Debian", "Fedora", "macOS", "Windows"):
        assert system in said


def test_the_caller_may_choose(programs: Path, scripts: Path) -> None:
    add_python(programs, "python3", (3, 12))
    mine = add_python(programs, "mine", (3, 11))
    said = run(programs, scripts / "test", TENUTO_PYTHON=str(mine.with_name("mine")))
    assert said.startswith("mine ")
    said = run(programs, scripts / "test", TENUTO_PYTHON="/nowhere")
    assert said == "error: TENUTO_PYTHON=/nowhere is no Python 3.11 or newer.\n"
